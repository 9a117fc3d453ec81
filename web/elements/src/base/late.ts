/** `<arp-late>`: content that is shown only if it lasts, such as the state of a message that is not delivered yet. */

import { define } from "./element.js";

const SHOWN_AFTER_MS = 1000;

/** A server loads this module too, where there are no elements. */
const Element = (globalThis.HTMLElement ?? Object) as typeof HTMLElement;

/** Show the content after one second in the document. */
export class ArpLate extends Element {
  #timer: ReturnType<typeof setTimeout> | undefined;

  connectedCallback(): void {
    this.hidden = true;
    this.#timer = setTimeout(() => (this.hidden = false), SHOWN_AFTER_MS);
  }

  disconnectedCallback(): void {
    clearTimeout(this.#timer);
  }
}

define("arp-late", ArpLate);
