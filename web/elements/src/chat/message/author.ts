/** The name above what somebody says whom the agent has handed over to. */

import { html, type TemplateResult } from "lit";

import { visible } from "../../base/values.js";

const TONES = 6;

/** The name, with a badge of its initials for the eye. */
export function authorLine(name: string): TemplateResult {
  return html`<h2 class="arp-author"><span class="arp-initials" data-tone=${toneOf(name)} aria-hidden="true">${initialsOf(name)}</span><span dir="auto">${visible(name)}</span></h2>`;
}

/** The first letters of the first and the last word. */
export function initialsOf(name: string): string {
  const words = name.match(/[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu) ?? [];
  const letters = [words[0], ...(words.length > 1 ? [words.at(-1)] : [])].map((word) => [...(word ?? "")][0] ?? "");
  return letters.join("").toUpperCase();
}

/** The same name has the same colour in every session. */
function toneOf(name: string): number {
  return [...name].reduce((sum, sign) => (sum * 31 + (sign.codePointAt(0) as number)) % 65_521, 7) % TONES;
}
