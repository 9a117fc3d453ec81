/**
 * The sources of one turn: `[2]` in its text refers to the second of them.
 *
 * Theory of operation. A list of sources may arrive long after the text that refers to it, and it may grow. So each
 * `[2]` is an element of its own (`<arp-cite>`) that observes the sources of its turn. It becomes a link as soon as
 * there is a second source, and the prose around it is not drawn again.
 */

import type { Cell, Component, Json, JsonObject } from "@agent-rendering/core";
import { SOURCES } from "@agent-rendering/core/chat";
import { freshId, isObject, list, text } from "./values.js";

/** A source of an answer. */
export interface Source {
  readonly title: string;
  /** Address from the agent, not checked yet; empty if there is none. */
  readonly url: string;
  /** Relevant passage of the source; empty if there is none. */
  readonly excerpt: string;
}

/**
 * Return the sources in the props of a list. An item that is not an object counts as a title: dropping it would shift
 * the numbers of the sources after it.
 */
export function sourcesOf({ sources }: JsonObject): readonly Source[] {
  return list(sources).map((given: Json) => {
    const { title, url, excerpt } = isObject(given) ? given : { title: given };
    return { title: text(title), url: text(url), excerpt: text(excerpt) };
  });
}

const NONE: readonly Source[] = [];

/** Cell with the sources that the text of one turn can refer to. */
export class Citations implements Cell<readonly Source[]> {
  /** Prefix of the ids of the listed sources: `ID-2` is the second one. */
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

  /** Read the sources from the output of the turn: the last list counts. Returns whether there are any sources. */
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
