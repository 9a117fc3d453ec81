/** The tool calls of an answer, in a panel beside the chat. `<ArpChat>` shows them in the conversation instead. */

import type { ToolCardState } from "@agent-rendering/core/chat";
import { translator, type Translator } from "@agent-rendering/core/strings";
import type { ReactElement } from "react";
import { TOOL_STATE_TEXTS } from "../../bindings/src/chat.js";

export interface ArpActivityPanelProps {
  toolCards: ToolCardState[];
  open: boolean;
  onToggle?: (() => void) | undefined;
  /** Translator; English if absent. */
  t?: Translator | undefined;
}

const ENGLISH = translator("en");

/** List of the tool calls with their states; empty while there are none. */
export function ArpActivityPanel({
  toolCards,
  open,
  onToggle,
  t = ENGLISH,
}: ArpActivityPanelProps): ReactElement | null {
  if (toolCards.length === 0) return null;
  const title = t("activity", { count: toolCards.length });
  return (
    <aside className="arp arp-activity-panel" aria-label={title}>
      <button type="button" className="arp-button arp-quiet" aria-expanded={open} onClick={onToggle}>
        {title}
      </button>
      {open && (
        <ol>
          {toolCards.map(({ callId, name, displayName, status, run, elapsed }, at) => (
            <li key={callId || at} data-status={status} title={name}>
              {t(TOOL_STATE_TEXTS[status], { tool: displayName })}{" "}
              {run?.progress?.text && <span dir="auto">{run.progress.text}</span>}{" "}
              {elapsed !== undefined && <span className="arp-caption">{elapsed}</span>}
            </li>
          ))}
        </ol>
      )}
    </aside>
  );
}
