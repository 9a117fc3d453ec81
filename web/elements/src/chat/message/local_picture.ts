/** `<arp-local-picture>`: a picture from the reader's disk, while it is being sent. */

import { html } from "lit";

import { visible } from "../../base/values.js";
import { ArpElement, define } from "../../base/element.js";

export class ArpLocalPicture extends ArpElement {
  static override properties = { file: { attribute: false } };

  declare file: File | null;
  /** Address of the file. It keeps the file in memory until it is revoked. */
  #address: string | null = null;

  constructor() {
    super();
    this.file = null;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.requestUpdate(); // a move has revoked the address
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    if (this.#address !== null) URL.revokeObjectURL(this.#address);
    this.#address = null;
  }

  protected override render(): unknown {
    if (this.file === null) return "";
    this.#address ??= URL.createObjectURL(this.file);
    return html`<img src=${this.#address} alt=${visible(this.file.name)} />`;
  }
}

define("arp-local-picture", ArpLocalPicture);
