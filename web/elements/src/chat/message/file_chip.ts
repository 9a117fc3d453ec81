/** A file as a chip: an icon or a preview, the name and the size. */

import type { Translator } from "@agent-rendering/core/strings";
import { html, nothing, type TemplateResult } from "lit";

import { icon } from "../icons.js";
import { visible } from "../../base/values.js";

const UNITS = ["byte", "kilobyte", "megabyte", "gigabyte"] as const;

/** Return a size for readers, such as "78 bytes" or "3.4 kB". */
export function sizeText(bytes: number, t: Translator): string {
  let size = Number.isFinite(bytes) ? bytes : 0;
  let unit = 0;
  while (size >= 1000 && unit < UNITS.length - 1) {
    size /= 1000;
    unit += 1;
  }
  const maximumFractionDigits = size < 10 && unit > 0 ? 1 : 0;
  return t.number(size, {
    style: "unit",
    unit: UNITS[unit] as string,
    unitDisplay: unit === 0 ? "long" : "short",
    maximumFractionDigits,
  });
}

/** Return the chip. `preview` is the address of a small picture; `null` shows an icon. */
export function fileChip(
  { name, size, type }: { readonly name: string; readonly size: number; readonly type: string },
  t: Translator,
  preview: string | null = null,
): TemplateResult {
  return html`<span class="arp-file">
    ${preview === null ? icon(type.startsWith("image/") ? "image" : "file") : html`<img src=${preview} alt="" />`}
    <bdi class="arp-file-name">${visible(name)}</bdi>
    ${Number.isFinite(size) ? html`<span class="arp-caption">${sizeText(size, t)}</span>` : nothing}
  </span>`;
}
