/** The tool calls of an answer, in a panel beside the chat. `<ArpChat>` shows them in the conversation instead. */

import type { ToolCardState } from "@agent-rendering/core/chat";
import { translator, type Translator } from "@agent-rendering/core/strings";
import { defineComponent, h, type PropType } from "vue";
import { TOOL_STATE_TEXTS } from "../../bindings/src/chat.js";

/** List of the tool calls with their states; empty while there are none. */
export const ArpActivityPanel = defineComponent({
  name: "ArpActivityPanel",
  props: {
    toolCards: { type: Array as PropType<ToolCardState[]>, required: true },
    open: { type: Boolean, default: false },
    /** Translator; English if absent. */
    t: { type: Function as PropType<Translator>, default: () => translator("en") },
  },
  emits: { toggle: () => true },
  setup(props, { emit }) {
    const words = translator("en");
    return () => {
      const { toolCards, open } = props;
      const t = typeof props.t === "function" && "locale" in props.t ? props.t : words;
      if (toolCards.length === 0) return null;
      const title = t("activity", { count: toolCards.length });
      const line = ({ callId, name, displayName, status, run, elapsed }: ToolCardState, at: number) =>
        h("li", { key: callId || at, "data-status": status, title: name }, [
          t(TOOL_STATE_TEXTS[status], { tool: displayName }),
          run?.progress?.text ? [" ", h("span", { dir: "auto" }, run.progress.text)] : null,
          elapsed === undefined ? null : h("span", { class: "arp-caption" }, ` ${elapsed}`),
        ]);
      return h("aside", { class: "arp arp-activity-panel", "aria-label": title }, [
        h(
          "button",
          { type: "button", class: "arp-button arp-quiet", "aria-expanded": open, onClick: () => emit("toggle") },
          title,
        ),
        open ? h("ol", toolCards.map(line)) : null,
      ]);
    };
  },
});
