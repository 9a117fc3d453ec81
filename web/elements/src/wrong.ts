/** What went wrong, in the reader's language where that has words for it. */

import type { ErrorPayload } from "@agent-rendering/core";
import { html, nothing } from "lit";

import type { Translate } from "./context.js";
import { visible } from "./values.js";

/**
 * The words for the error's code in the reader's language, and behind them the server's own, which are English or the agent's;
 * these alone where there are no others. `line` may put them into a sentence.
 */
export function wrong({ error, code }: Pick<ErrorPayload, "error" | "code">, t: Translate, line = (text: string) => text): unknown {
  const known = t.problem(code);
  return html`${visible(line(known ?? error))}${known === null ? nothing : html` <span class="arp-caption" dir="auto">${visible(error)}</span>`}`;
}
