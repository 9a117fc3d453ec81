/** Texts for errors, in the reader's language if that has a text for the code. */

import type { ErrorPayload } from "@agent-rendering/core";
import { html } from "lit";

import type { Translate } from "./context.js";
import { visible, withoutCodes } from "./values.js";

/**
 * Return an error text as a sentence, with a capital letter and a full stop. A first word that is a name
 * (`props.rows: …`, `app.py has …`) keeps its case. A text that ends in a script without this full stop gets none.
 * `sentence` in `errors.py` has the same rules.
 */
export function sentence(text: string): string {
  const capitalised = text
    .trim()
    .replace(/^\p{Ll}(?=\p{Ll}*(['’]\p{Ll}+)?[,;.…!?]*(\s|$))/u, (first) => first.toUpperCase());
  return /(?:[\p{L}\p{N}](?<=[\0-\u06ff])|[)\]}>"'”’»%`])$/u.test(capitalised) ? `${capitalised}.` : capitalised;
}

/**
 * Return the text for the code of an error in the reader's language, followed by the text from the server, which may be
 * in another language. Without a text for the code, the text from the server is shown alone.
 *
 * @param line Puts the first text into a longer sentence.
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
