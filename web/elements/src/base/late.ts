/** `<arp-late>`: content that is shown only if it lasts, such as the state of a message that is not delivered yet. */

import { define } from "./element.js";

const SHOWN_AFTER_MS = 1000;

/** Without a DOM there is no `HTMLElement`; importing this module must not fail there. */
const Base = globalThis.HTMLElement ?? Object;

/** Show the content after one second in the document. */
export class ArpLate extends Base {
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
