/** One turn, or one message in the draft's form, drawn with `<arp-message>`. */

import type { ArpClient, ErrorPayload, ToolRenderEvent, TurnState } from "@agent-rendering/core";
import type { MessagePart } from "@agent-rendering/core/chat";
import type { Strings } from "@agent-rendering/core/strings";
import "@agent-rendering/elements";
import { computed, defineComponent, h, useId, type PropType } from "vue";
import { turnOfMessage } from "../../bindings/src/message.js";
import { asText, ownOf } from "../../bindings/src/own_components.js";
import { useOwnComponents } from "./drawing.js";
import { CustomElement, useBrowser } from "./element.js";
import { useArpClient, useComponents, type ArpComponents } from "./provide.js";
import { useElementContext } from "./words.js";

const absent = { default: undefined } as const;

/** Draws `v-bind="message"` or `:turn`. It is rendered again only when its own data changes. */
export const ArpMessage = defineComponent({
  name: "ArpMessage",
  inheritAttrs: false,
  props: {
    /** A turn, as `useArpTurn` returns it. */
    turn: { type: Object as PropType<TurnState>, ...absent },
    id: { type: String, ...absent },
    role: { type: String as PropType<"user" | "assistant">, default: "assistant" },
    content: { type: String, default: "" },
    file: { type: String, ...absent },
    uiEvents: { type: Array as PropType<ToolRenderEvent[]>, ...absent },
    parts: { type: Array as PropType<readonly MessagePart[]>, ...absent },
    status: { type: String as PropType<TurnState["status"]>, ...absent },
    error: { type: Object as PropType<ErrorPayload>, ...absent },
    /** Whether its questions can no longer be answered. */
    restored: { type: Boolean, default: false },
    /** Client; that of the nearest provider if absent. */
    client: { type: Object as PropType<ArpClient | null>, ...absent },
    components: { type: Object as PropType<ArpComponents>, ...absent },
    theme: { type: String as PropType<"light" | "dark" | "system" | "auto">, ...absent },
    locale: { type: String, ...absent },
    strings: { type: Object as PropType<Partial<Strings>>, ...absent },
    /** Picture beside the agent's message: an address on this page's own server, or a short text. */
    avatar: { type: String, default: "" },
  },
  emits: {
    /** An answer as a text, if there is no client. */
    input: (_text: string) => true,
  },
  setup(props, { emit }) {
    const shared = useArpClient();
    const client = computed(() => (props.client === undefined ? shared.value : props.client));
    const fallbackId = useId();
    const turn = computed(() => {
      if (props.turn !== undefined) return props.turn;
      return turnOfMessage(props, props.id ?? fallbackId);
    });
    const components = useComponents(() => props.components);
    const own = computed(() => ownOf(components.value));
    const { registry, teleports } = useOwnComponents(() => own.value);
    const answer = asText((text) => emit("input", text));
    const context = useElementContext(() => ({
      client: client.value,
      registry: registry.value,
      locale: props.locale,
      strings: props.strings,
      theme: props.theme,
      answer: client.value === null ? answer : undefined,
    }));
    const isBrowser = useBrowser();
    const properties = computed(() => ({
      turn: turn.value,
      client: client.value,
      context: context.value,
      avatar: props.avatar,
      readonly: props.restored || props.turn === undefined,
    }));
    return () =>
      h("div", { class: ["arp-message-host", `arp-message--${props.role}`] }, [
        isBrowser.value
          ? h(CustomElement, { key: "message", tag: "arp-message", properties: properties.value })
          : h("p", { key: "shell", class: "arp-shell" }, props.content),
        ...teleports(),
      ]);
  },
});
