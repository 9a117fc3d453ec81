/** Which element draws which component. */

import { VERSIONS, type Component } from "@agent-rendering/core";
import { SOURCES } from "@agent-rendering/core/chat";
import { html, type TemplateResult } from "lit";
import { repeat } from "lit/directives/repeat.js";
import type { ArpContext } from "../base/context.js";

type Draw = (component: Component, context: ArpContext) => TemplateResult;

/**
 * Return a function that draws with the element of this name. Lit recognises a template by the identity of its strings,
 * so they are made once for each element.
 */
function drawnBy(tag: string): Draw {
  const strings = [`<${tag} .component=`, " .context=", `></${tag}>`];
  const template: TemplateStringsArray = Object.assign(strings, { raw: strings });
  return (component, context) => html(template, component, context);
}

/** The element of a core component is named after its type. */
const DRAWN = new Map<string, Draw>([
  ...Object.keys(VERSIONS).map((type): [string, Draw] => [type, drawnBy(`arp-${type}`)]),
  [SOURCES, drawnBy("arp-sources")],
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
