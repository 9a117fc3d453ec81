/** Which element draws which component. */

import type { Component } from "@agent-rendering/core";
import { SOURCES } from "@agent-rendering/core/chat";
import { html, type TemplateResult } from "lit";
import { repeat } from "lit/directives/repeat.js";
import type { ArpContext } from "../base/context.js";

type Draw = (component: Component, context: ArpContext) => TemplateResult;

const DRAWN = new Map<string, Draw>([
  ["text", (component, context) => html`<arp-text .component=${component} .context=${context}></arp-text>`],
  ["markdown", (component, context) => html`<arp-markdown .component=${component} .context=${context}></arp-markdown>`],
  [
    "status-card",
    (component, context) => html`<arp-status-card .component=${component} .context=${context}></arp-status-card>`,
  ],
  ["table", (component, context) => html`<arp-table .component=${component} .context=${context}></arp-table>`],
  [
    "code-block",
    (component, context) => html`<arp-code-block .component=${component} .context=${context}></arp-code-block>`,
  ],
  ["diff", (component, context) => html`<arp-diff .component=${component} .context=${context}></arp-diff>`],
  [
    "key-value",
    (component, context) => html`<arp-key-value .component=${component} .context=${context}></arp-key-value>`,
  ],
  ["progress", (component, context) => html`<arp-progress .component=${component} .context=${context}></arp-progress>`],
  ["chart", (component, context) => html`<arp-chart .component=${component} .context=${context}></arp-chart>`],
  ["image", (component, context) => html`<arp-image .component=${component} .context=${context}></arp-image>`],
  [
    "product-cards",
    (component, context) => html`<arp-product-cards .component=${component} .context=${context}></arp-product-cards>`,
  ],
  ["form", (component, context) => html`<arp-form .component=${component} .context=${context}></arp-form>`],
  ["confirm", (component, context) => html`<arp-confirm .component=${component} .context=${context}></arp-confirm>`],
  ["choices", (component, context) => html`<arp-choices .component=${component} .context=${context}></arp-choices>`],
  [
    "text-input",
    (component, context) => html`<arp-text-input .component=${component} .context=${context}></arp-text-input>`,
  ],
  ["group", (component, context) => html`<arp-group .component=${component} .context=${context}></arp-group>`],
  ["tabs", (component, context) => html`<arp-tabs .component=${component} .context=${context}></arp-tabs>`],
  ["split", (component, context) => html`<arp-split .component=${component} .context=${context}></arp-split>`],
  [SOURCES, (component, context) => html`<arp-sources .component=${component} .context=${context}></arp-sources>`],
]);

/** What is loaded with the first component of its type: it is large, and many chats never show it. */
const LATER = new Map<string, () => Promise<unknown>>([
  ["chart", () => import("./chart/chart.js")],
  ["diff", () => import("./diff/diff.js")],
  ["form", () => import("./form/form.js")],
  ["product-cards", () => import("./product_cards.js")],
  ["table", () => import("./table/table.js")],
  [SOURCES, () => import("./sources.js")],
]);

/** Loads what draws these types, all if none are named; `renderComponent` does it by itself. */
export async function loadComponents(...types: string[]): Promise<void> {
  const wanted = types.length === 0 ? [...LATER.keys()] : types;
  await Promise.all(wanted.map((type) => LATER.get(type)?.()));
}

/** Fallbacks may have fallbacks; deeper than this is a mistake. */
const MOST_FALLBACKS = 16;

/**
 * Draws a component: with your own factory if the registry has one, else with ours; a type that nobody
 * knows by its fallback, and without one as a quiet card.
 */
export function renderComponent(component: Component, context: ArpContext): TemplateResult {
  let shown: Component | null | undefined = component;
  for (let step = 0; shown && step < MOST_FALLBACKS; step += 1) {
    if (shown !== component && (context.registry?.has(shown.type) || DRAWN.has(shown.type)))
      context.present(component, "fallback");
    if (context.registry?.has(shown.type)) return html`<arp-own .component=${shown} .context=${context}></arp-own>`;
    const draw = DRAWN.get(shown.type);
    if (draw) {
      if (LATER.has(shown.type)) void loadComponents(shown.type).catch(() => undefined); // tried again with the next one
      return draw(shown, context);
    }
    shown = shown.fallback;
  }
  return html`<arp-unknown .component=${component} .context=${context}></arp-unknown>`;
}

/** Draws components in order; each keeps its element, with focus and all, as long as its `id` is there. */
export function renderComponents(list: readonly Component[], context: ArpContext): unknown {
  return repeat(
    list,
    ({ id }) => id,
    (component) => renderComponent(component, context),
  );
}
