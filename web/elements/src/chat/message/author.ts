/** The name above the messages of another author, to whom the agent has handed over. */

import { html, type TemplateResult } from "lit";

import { visible } from "../../base/values.js";

const TONES = 6;

/** Return the name, with its initials in a badge that screen readers skip. */
export function authorLine(name: string): TemplateResult {
  return html`<h2 class="arp-author"><span class="arp-initials" data-tone=${toneOf(name)} aria-hidden="true">${initialsOf(name)}</span><span dir="auto">${visible(name)}</span></h2>`;
}

/** Return the first letters of the first and the last word of a name. */
export function initialsOf(name: string): string {
  const words = name.match(/[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu) ?? [];
  const letters = [words[0], ...(words.length > 1 ? [words.at(-1)] : [])].map((word) => [...(word ?? "")][0] ?? "");
  return letters.join("").toUpperCase();
}

/** Return the number of a colour. It depends on the name alone, so a name has the same colour in every session. */
function toneOf(name: string): number {
  return [...name].reduce((sum, sign) => (sum * 31 + (sign.codePointAt(0) as number)) % 65_521, 7) % TONES;
}
