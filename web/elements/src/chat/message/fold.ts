/** `<arp-fold>`: a long text of the reader. Only its beginning is visible until the reader opens it. */

import type { Translator } from "@agent-rendering/core/strings";
import { html } from "lit";

import { createContext } from "../../base/context.js";
import { ArpElement, define } from "../../base/element.js";

/** Largest text that is not folded. It fills most of a view. */
const [MOST_LINES, MOST_CHARACTERS] = [24, 4000];

/** Return whether a text is long enough to be folded. */
export function isLong(text: string): boolean {
  return text.length > MOST_CHARACTERS || linesOf(text) > MOST_LINES;
}

function linesOf(text: string): number {
  let lines = 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines += 1;
  return lines;
}

/** The whole text is in the document also while it is folded, so it can be found, copied and printed. */
export class ArpFold extends ArpElement {
  static override properties = { text: { attribute: false }, t: { attribute: false }, isOpen: { state: true } };

  declare text: string;
  declare t: Translator;
  declare protected isOpen: boolean;

  constructor() {
    super();
    this.text = "";
    this.t = createContext().t;
    this.isOpen = false;
  }

  protected override render(): unknown {
    const { t, text, isOpen } = this;
    const lines = linesOf(text);
    const size = lines > MOST_LINES ? ` (${t("linesAll", { count: lines })})` : "";
    return html`<div class="arp-fold"><div class="arp-fold-text" ?data-folded=${!isOpen}>${text}</div><button type="button" class="arp-button arp-quiet arp-small" aria-expanded=${isOpen ? "true" : "false"} @click=${() => (this.isOpen = !isOpen)}>${isOpen ? t("showLess") : t("showAll") + size}</button></div>`;
  }
}

define("arp-fold", ArpFold);
