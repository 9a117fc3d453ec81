/** W86: one page, rendered on a server (`server.mjs`) and hydrated in the browser (`hydrate.mjs`). */

import { ArpChat, ArpMessage, ArpProvider, ArpRenderer, useArpChat } from "@agent-rendering/vue";
import { Table } from "@agent-rendering/vue/ui";
import { defineComponent, h, useId } from "vue";
import { CHAT, parts } from "./parts.mjs";

const Rating = defineComponent({
  props: { stars: { type: Number, required: true } },
  emits: ["action"],
  setup: (props, { emit }) => {
    const id = useId();
    return () =>
      h("button", { id, onClick: () => emit("action", "rate", { stars: props.stars }) }, "★".repeat(props.stars));
  },
});

const Reading = defineComponent(() => {
  const { messages, isConnected } = useArpChat();
  return () =>
    h("p", { class: "reading" }, `${isConnected.value ? "online" : "away"}, ${messages.value.length} messages`);
});

export const page = defineComponent(
  () => () =>
    h(ArpProvider, { url: "/", components: { "x-demo-rating": Rating } }, () => [
      h("div", { style: { height: "500px" } }, [h(ArpChat, CHAT)]),
      ...parts(h, { ArpMessage, ArpRenderer, Table, Reading }),
    ]),
);
