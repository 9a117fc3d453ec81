/** The menu to copy or save the content of a table or chart. */

import { html, type TemplateResult } from "lit";
import { icon, type IconName } from "./icons.js";
import { addStyles } from "../style/sheet.js";
import styles from "../style/export_menu.css?inline";

/** An item of the menu: its label and its action. */
export type Offer = readonly [label: string, run: (event: Event) => Promise<void>];

/**
 * Return a small button with a menu that closes with Escape and when it loses the focus.
 *
 * @param opened Called each time the menu opens or closes.
 */
export function exportMenu(
  sign: IconName,
  label: string,
  offers: readonly Offer[],
  opened: () => void = () => undefined,
): TemplateResult {
  return html`<details class="arp-menu" @toggle=${opened} @keydown=${closeByKey} @focusout=${closeWhenLeft}>
    <summary class="arp-icon-button" aria-label=${label} title=${label}>${icon(sign)}</summary>
    <div class="arp-menu-items">${offers.map(([words, run]) => html`<button type="button" class="arp-button arp-quiet" @click=${(event: Event) => void run(event)}>${words}</button>`)}</div>
  </details>`;
}

function closeByKey(event: KeyboardEvent): void {
  const menu = event.currentTarget as HTMLDetailsElement;
  if (event.key !== "Escape" || !menu.open) return;
  event.stopPropagation();
  menu.open = false;
  menu.querySelector("summary")?.focus();
}

function closeWhenLeft(event: FocusEvent): void {
  const menu = event.currentTarget as HTMLDetailsElement;
  if (!menu.contains(event.relatedTarget as Node | null)) menu.open = false;
}

addStyles(styles);
