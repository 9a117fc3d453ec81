/**
 * The sources of one turn: what `[2]` in its text stands for.
 *
 * Theory of operation. A source list may come long after the text that refers to it, and grow. So every
 * `[2]` is a place of its own (`<arp-cite>`) that watches its turn's sources and becomes a link once there
 * is a second one; the prose around it is not drawn again.
 */

import type { Cell, Component, Json, JsonObject } from "@agent-rendering/core";
import { SOURCES } from "@agent-rendering/core/chat";
import { freshId, isObject, list, text } from "./values.js";

/** Something that was read. */
export interface Source {
  readonly title: string;
  /** As the agent gave it; empty if there is none. */
  readonly url: string;
  /** The passage that counts. */
  readonly excerpt: string;
}

/** The sources in the props of a list; what is no object counts as a title, so that numbers stay true. */
export function sourcesOf({ sources }: JsonObject): readonly Source[] {
  return list(sources).map((given: Json) => {
    const { title, url, excerpt } = isObject(given) ? given : { title: given };
    return { title: text(title), url: text(url), excerpt: text(excerpt) };
  });
}

const NONE: readonly Source[] = [];

/** What the text of one turn may refer to, as a cell. */
export class Citations implements Cell<readonly Source[]> {
  /** Begins the ids of what is listed: `ID-2` is the second. */
  readonly id = freshId("source");
  readonly #listeners = new Set<() => void>();
  #shown: readonly Source[] = NONE;
  #props: JsonObject | null = null;

  readonly get = (): readonly Source[] => this.#shown;

  readonly subscribe = (listener: () => void): (() => void) => {
    const own = () => listener();
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  };

  /** Looks at what a turn shows: its last list counts. Returns whether there are any sources. */
  look(output: readonly Component[]): boolean {
    const props = output.findLast(({ type }) => type === SOURCES)?.props ?? null;
    if (props !== this.#props) {
      this.#props = props;
      this.#shown = props === null ? NONE : sourcesOf(props);
      for (const listener of [...this.#listeners]) listener();
    }
    return this.#shown.length > 0;
  }
}
