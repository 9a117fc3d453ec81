/** The base of all our elements: light DOM and our styles. */

import { LitElement } from "lit";
import { noted } from "./draw_all.js";
import { adoptStyles } from "../style/sheet.js";

/** An element of ours in light DOM. */
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

/** Makes a tag known, unless it is: two copies of this package in one page share the first. */
export function define(tag: string, element: CustomElementConstructor): void {
  if (typeof customElements !== "undefined" && !customElements.get(tag)) customElements.define(tag, element);
}

/** Dispatch an event of an element that applications may listen to on any ancestor. */
export function emit(element: HTMLElement, name: string, detail: unknown): void {
  element.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, composed: true }));
}
