/**
 * Texts that `Intl` formats, written after the elements around them are shown. The first use of `Intl` in a page takes
 * as long as drawing a screen of messages.
 */

import { noChange } from "lit";
import { directive, Directive, type ElementPart } from "lit/directive.js";

import type { Translate } from "../base/context.js";

/** Return the text of an element, and its title. */
type Words = (t: Translate) => readonly [text: string, title?: string];

/** Translators that have formatted a text: further texts are fast, and are written at once. */
const known = new WeakSet<Translate>();
let waiting: (() => void)[] = [];

const PATIENCE_MS = 500;

class Worded extends Directive {
  #key: string | null = null;
  #t: Translate | null = null;

  render(_key: string, _t: Translate, _words: Words): unknown {
    return noChange;
  }

  override update({ element }: ElementPart, [key, t, words]: [string, Translate, Words]): unknown {
    if (key === this.#key && t === this.#t) return noChange;
    [this.#key, this.#t] = [key, t];
    const write = () => {
      if (key !== this.#key || t !== this.#t) return; // the element has another text by now
      known.add(t);
      const [text, title = ""] = words(t);
      element.textContent = text;
      if (title) (element as HTMLElement).title = title;
    };
    if (known.has(t)) write();
    else if (waiting.push(write) === 1) shown(writeAll);
    return noChange;
  }
}

/**
 * Set the text and title of an element: `<time ${worded(key, t, (t) => [text, title])}>\u00a0</time>`. They are set
 * again when the key or the language changes. Until they are set, the no-break space in the element keeps its height.
 */
export const worded = directive(Worded);

function writeAll(): void {
  const all = waiting;
  waiting = [];
  for (const write of all) write();
}

/** Call a function when the current frame is shown and the browser is idle. */
function shown(act: () => void): void {
  const { requestIdleCallback: idle } = globalThis as Partial<typeof globalThis>;
  if (idle) idle(act, { timeout: PATIENCE_MS });
  else setTimeout(act, 50);
}
