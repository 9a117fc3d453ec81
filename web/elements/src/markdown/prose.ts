/** Prose as an element. */

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
  /** Whether more of it is to come. */
  declare streaming: boolean;
  declare context: ArpContext;
  #view: ProseView | null = null;

  constructor() {
    super();
    this.text = "";
    this.streaming = false;
    this.context = NOWHERE;
  }

  /** Whether a part of it is drawn in a later frame. */
  get busy(): boolean {
    return this.#view?.busy ?? false;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.classList.add("arp-prose");
    if (this.#view) this.requestUpdate(); // taken out, it stopped drawing
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

  /** Lit keeps a mark of its own in this element, so prose gets a place beside it. */
  #place(): HTMLElement {
    const place = document.createElement("div");
    place.className = "arp-blocks";
    this.append(place);
    return place;
  }
}

define("arp-prose", ArpProse);
