/** What tests of elements share: a place in the document, and a context that notes what is sent. */

import type { Component, Json, JsonObject } from "@agent-rendering/core";
import { render } from "lit";
import { createContext, renderComponent, type ArpContext } from "../src/index.js";

let count = 0;

/** A component with an id of its own. */
export function component(type: string, props: JsonObject, more: Partial<Component> = {}): Component {
  count += 1;
  return { id: `c${count}`, type, props, ...more };
}

/** What components did. */
export interface Noted {
  readonly answers: [id: string, value: Json][];
  readonly files: string[];
  readonly announced: string[];
  readonly context: ArpContext;
}

/** A context that notes answers and announcements. */
export function noting(given: Partial<ArpContext> = {}): Noted {
  const noted = { answers: [] as [string, Json][], files: [] as string[], announced: [] as string[] };
  const context = createContext({
    answer: ({ id }, value, files = []) => {
      noted.answers.push([id, value]);
      noted.files.push(...files.map(({ part, file }) => `${part}=${file.name}`));
    },
    announce: (text) => void noted.announced.push(text),
    ...given,
  });
  return { ...noted, context };
}

/** Draws a component; the same place draws its next state. */
export async function drawn(shown: Component, context: ArpContext, place = newPlace()): Promise<HTMLElement> {
  render(renderComponent(shown, context), place);
  await ready(place);
  return place;
}

/** Waits until all elements of ours in a place have drawn. */
export async function ready(place: HTMLElement): Promise<void> {
  for (let round = 0; round < 5; round += 1) {
    for (const one of place.querySelectorAll<HTMLElement & { updateComplete?: Promise<unknown> }>("*"))
      await one.updateComplete;
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
}

function newPlace(): HTMLElement {
  const place = document.createElement("div");
  document.body.append(place);
  return place;
}

/** The text of a place, blanks as one. */
export function words(place: Element | null): string {
  return (place?.textContent ?? "").replace(/\s+/g, " ").trim();
}
