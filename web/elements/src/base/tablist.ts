/** Tabs that show one of several panels; arrow keys move between the tabs. */

import { html, type TemplateResult } from "lit";

/** Options of a list of tabs. */
export interface TabList {
  /** Prefix of the ids of tabs and panel: `ID-tab-N`, `ID-panel`. */
  readonly id: string;
  readonly label: string;
  readonly tabs: readonly unknown[];
  readonly active: number;
  choose(number: number): void;
}

/** Return the tabs. The caller draws the panel and gives it the id `ID-panel`. */
export function tabList({ id, label, tabs, active, choose }: TabList): TemplateResult {
  return html`<div class="arp-tablist" role="tablist" aria-label=${label} @keydown=${(event: KeyboardEvent) => move(event, active, tabs.length, choose)}>
    ${tabs.map(
      (tab, at) => html`<button
      type="button" role="tab" class="arp-tab" id="${id}-tab-${at}" aria-controls="${id}-panel"
      aria-selected=${String(at === active)} tabindex=${at === active ? 0 : -1} @click=${() => choose(at)}
    >${tab}</button>`,
    )}
  </div>`;
}

/** Activate the tab that a key leads to. In right-to-left text the arrow keys are swapped. */
function move(event: KeyboardEvent, active: number, count: number, choose: (number: number) => void): void {
  const list = event.currentTarget as HTMLElement;
  const ahead = getComputedStyle(list).direction === "rtl" ? "ArrowLeft" : "ArrowRight";
  const back = ahead === "ArrowRight" ? "ArrowLeft" : "ArrowRight";
  const next = { [ahead]: (active + 1) % count, [back]: (active - 1 + count) % count, Home: 0, End: count - 1 }[
    event.key
  ];
  if (next === undefined) return;
  event.preventDefault();
  event.stopPropagation(); // shortcuts of the page must not react to the same key
  choose(next);
  list.querySelectorAll<HTMLElement>("[role=tab]")[next]?.focus();
}
