/** `<arp-late>`: what is worth a word only if it lasts, such as a message that is not delivered yet. */

import { define } from "./element.js";

const SHOWN_AFTER_MS = 1000;

/** Shows its content when it has was in the document for a second. */
export class ArpLate extends HTMLElement {
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
