/** Markdown as an element. */

import { noChange, type PropertyDeclarations } from "lit";
import { NOWHERE, type ArpContext } from "../base/context.js";
import { ArpElement, define } from "../base/element.js";
import "../style/content.js";
import { ProseView } from "./view.js";

/** `<arp-prose>`: Markdown that may grow at its end. */
export class ArpProse extends ArpElement {
  static override properties: PropertyDeclarations = {
    text: { attribute: false },
    streaming: { type: Boolean },
    context: { attribute: false },
  };

  declare text: string;
  /** Whether more text is coming. */
  declare streaming: boolean;
  declare context: ArpContext;
  #view: ProseView | null = null;

  constructor() {
    super();
    this.text = "";
    this.streaming = false;
    this.context = NOWHERE;
  }

  /** Whether a part of the text will be drawn in a later frame. */
  get busy(): boolean {
    return this.#view?.busy ?? false;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.classList.add("arp-prose");
    if (this.#view) this.requestUpdate(); // removed from the document, it had stopped drawing
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#view?.stop();
  }

  protected override render(): unknown {
    return noChange;
  }

  protected override updated(): void {
    this.#view ??= new ProseView(this.#place(), this.context);
    this.#view.update(this.text, this.streaming, this.context);
  }

  /** Return a container for the blocks. Lit keeps a comment node of its own in this element, which must stay. */
  #place(): HTMLElement {
    const place = document.createElement("div");
    place.className = "arp-blocks";
    this.append(place);
    return place;
  }
}

define("arp-prose", ArpProse);
