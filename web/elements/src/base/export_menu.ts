/** The menu by which what a component shows is copied or saved: a table and a chart have one. */

import { html, type TemplateResult } from "lit";
import { icon, type IconName } from "./icons.js";
import { addStyles } from "../style/sheet.js";
import styles from "../style/export_menu.css?inline";

/** What is offered: its words, and what it does. */
export type Offer = readonly [label: string, run: (event: Event) => Promise<void>];

/** A menu behind a small button; it closes with Escape and when the focus leaves it. `opened` is notified that it opens or closes. */
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
