/** Chooses the element that draws a component. */

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

/** Drawing functions by type. The element of a core component is named after its type. */
const DRAWN = new Map<string, Draw>([
  ...Object.keys(VERSIONS).map((type): [string, Draw] => [type, drawnBy(`arp-${type}`)]),
  [SOURCES, drawnBy("arp-sources")],
]);

/** Loaders of large elements that many chats never show. Each is called with the first component of its type. */
const LATER = new Map<string, () => Promise<unknown>>([
  ["chart", () => import("./chart/chart.js")],
  ["diff", () => import("./diff/diff.js")],
  ["form", () => import("./form/form.js")],
  ["product-cards", () => import("./product_cards.js")],
  ["table", () => import("./table/table.js")],
  [SOURCES, () => import("./sources.js")],
]);

/** Load the elements of these types, or of all types if none is named. `renderComponent` does this by itself. */
export async function loadComponents(...types: string[]): Promise<void> {
  const wanted = types.length === 0 ? [...LATER.keys()] : types;
  await Promise.all(wanted.map((type) => LATER.get(type)?.()));
}

/** Longest chain of fallbacks that is followed; a longer chain is a mistake. */
const MOST_FALLBACKS = 16;

/**
 * Return the drawing of a component: by its factory in the registry, else by the element of its type. A component of
 * an unknown type is drawn as its fallback, or without one as a card that says that it cannot be shown.
 */
export function renderComponent(component: Component, context: ArpContext): TemplateResult {
  let shown: Component | null | undefined = component;
  for (let step = 0; shown && step < MOST_FALLBACKS; step += 1) {
    if (shown !== component && (context.registry?.has(shown.type) || DRAWN.has(shown.type)))
      context.present(component, "fallback");
    if (context.registry?.has(shown.type)) return html`<arp-own .component=${shown} .context=${context}></arp-own>`;
    const draw = DRAWN.get(shown.type);
    if (draw) {
      if (LATER.has(shown.type)) void loadComponents(shown.type).catch(() => undefined); // the next component of this type tries again
      return draw(shown, context);
    }
    shown = shown.fallback;
  }
  return html`<arp-unknown .component=${component} .context=${context}></arp-unknown>`;
}

/** Return the drawings of components, in order. A component keeps its element, with the focus, while its id exists. */
export function renderComponents(list: readonly Component[], context: ArpContext): unknown {
  return repeat(
    list,
    ({ id }) => id,
    (component) => renderComponent(component, context),
  );
}
