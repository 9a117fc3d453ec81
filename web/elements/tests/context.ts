/** Shared by the tests of elements: a place in the document, and a context that records what is sent. */

import type { Component, Json, JsonObject } from "@agent-rendering/core";
import { render } from "lit";
import { createContext, renderComponent, type ArpContext } from "../src/index.js";

let count = 0;

/** Return a component with a new id. */
export function component(type: string, props: JsonObject, more: Partial<Component> = {}): Component {
  count += 1;
  return { id: `c${count}`, type, props, ...more };
}

/** Answers, files and announcements of components, in order. */
export interface Noted {
  readonly answers: [id: string, value: Json][];
  readonly files: string[];
  readonly announced: string[];
  readonly context: ArpContext;
}

/** Return a context that records answers and announcements. */
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

/** Draw a component and return its place. Drawn into the same place again, it is updated. */
export async function drawn(shown: Component, context: ArpContext, place = newPlace()): Promise<HTMLElement> {
  render(renderComponent(shown, context), place);
  await ready(place);
  return place;
}

/** Wait until all of our elements in a place are drawn. */
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

/** Return the text of a place, with single spaces. */
export function words(place: Element | null): string {
  return (place?.textContent ?? "").replace(/\s+/g, " ").trim();
}
