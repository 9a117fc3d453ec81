/** The base of all elements of this package: light DOM and shared styles. */

import { LitElement } from "lit";
import { noted } from "./draw_all.js";
import { adoptStyles } from "../style/sheet.js";

/** An element in light DOM. It adds the shared styles to the document or shadow root that it is in. */
export abstract class ArpElement extends LitElement {
  protected override createRenderRoot(): HTMLElement {
    return this;
  }

  override requestUpdate(...given: Parameters<LitElement["requestUpdate"]>): void {
    super.requestUpdate(...given);
    if (this.isUpdatePending) noted(this);
  }

  override connectedCallback(): void {
    adoptStyles(this.getRootNode());
    this.classList.add("arp");
    super.connectedCallback();
  }
}

/** Define a custom element, unless its tag is in use: a second copy of this package in one page would throw here. */
export function define(tag: string, element: CustomElementConstructor): void {
  if (typeof customElements !== "undefined" && !customElements.get(tag)) customElements.define(tag, element);
}

/** Dispatch an event of an element that applications may listen to on any ancestor. */
export function emit(element: HTMLElement, name: string, detail: unknown): void {
  element.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, composed: true }));
}
