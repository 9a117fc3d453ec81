/** What went wrong, in the reader's language where that has words for it. */

import type { ErrorPayload } from "@agent-rendering/core";
import { html } from "lit";

import type { Translate } from "./context.js";
import { visible, withoutCodes } from "./values.js";

/**
 * An error as a sentence: with a capital and a full stop. A first word that is no plain word names something (`props.rows: …`,
 * `app.py has …`) and stays as it is; so does the end of a text in a script without our full stop. `sentence` in `errors.py` is its twin.
 */
export function sentence(text: string): string {
  const capitalised = text
    .trim()
    .replace(/^\p{Ll}(?=\p{Ll}*(['’]\p{Ll}+)?[,;.…!?]*(\s|$))/u, (first) => first.toUpperCase());
  return /(?:[\p{L}\p{N}](?<=[\0-\u06ff])|[)\]}>"'”’»%`])$/u.test(capitalised) ? `${capitalised}.` : capitalised;
}

/**
 * The words for the error's code in the reader's language, and after them the server's own, which are English or the agent's;
 * these alone where there are no others. `line` may put them into a sentence.
 */
export function wrong(
  { error, code }: Pick<ErrorPayload, "error" | "code">,
  t: Translate,
  line = (text: string) => text,
): unknown {
  const [known, own] = [t.problem(code), sentence(withoutCodes(error))];
  return known === null
    ? visible(line(own))
    : html`${visible(line(known))} <span class="arp-caption" dir="auto">${visible(own)}</span>`;
}
