/** A picture; one from elsewhere waits for the reader's consent, so that nothing is fetched because an agent said so. */

import { html, nothing, type PropertyDeclarations } from "lit";
import { NOWHERE, type ArpContext } from "./context.js";
import { ArpElement, define } from "./element.js";
import { icon } from "./icons.js";
import "../style/content.js";
import { styled } from "./styled.js";
import { imageSource } from "./url.js";

/** Hosts from which the reader has let a picture come, for as long as this page lives. */
const allowed = new Set<string>();

/** `<arp-picture>`: a picture, the question whether to load it, or its text. */
export class ArpPicture extends ArpElement {
  static override properties: PropertyDeclarations = {
    source: { attribute: false },
    alt: { attribute: false },
    width: { attribute: false },
    height: { attribute: false },
    inline: { attribute: false },
    fills: { attribute: false },
    context: { attribute: false },
    isBroken: { state: true },
    isEnlarged: { state: true },
  };

  declare source: string;
  declare alt: string;
  /** CSS pixels, if they are known: its place is kept free. */
  declare width: number | null;
  declare height: number | null;
  /** Whether it is in a line of text and cannot be enlarged. */
  declare inline: boolean;
  /** Whether it fills its place, and what goes beyond is cut. */
  declare fills: boolean;
  declare context: ArpContext;
  declare isBroken: boolean;
  declare isEnlarged: boolean;
  #retried = "";

  constructor() {
    super();
    Object.assign(this, {
      source: "",
      alt: "",
      width: null,
      height: null,
      inline: false,
      fills: false,
      isBroken: false,
      isEnlarged: false,
    });
    this.context = NOWHERE;
  }

  protected override willUpdate(changed: Map<PropertyKey, unknown>): void {
    if (changed.has("source")) this.isBroken = false;
  }

  /** The cookie for the server's files lasts an hour: with a new one it is tried once more. */
  async #failed(url: string): Promise<void> {
    this.isBroken = true;
    const { client } = this.context;
    if (client === null || this.#retried === url || !new URL(url, document.baseURI).pathname.includes("/_api/blobs/"))
      return;
    this.#retried = url;
    try {
      await client.sessions.openFiles();
      this.isBroken = false;
    } catch {
      // Its text is there.
    }
  }

  protected override render(): unknown {
    const { t } = this.context;
    const found = imageSource(this.source);
    if (found === null || this.isBroken) return this.#broken(found !== null);
    if (found.kind === "remote" && !allowed.has(found.host)) {
      return html`<span class="arp-picture-place">${icon("image")}<span><span dir="auto">${this.alt}</span>
        <span class="arp-note">${t("imageBlocked", { host: found.host })}</span></span>
        <button type="button" class="arp-button arp-soft arp-small" @click=${() => this.#allow(found.host)}>${t("loadImage")}<span class="arp-hidden">: ${this.alt}</span></button></span>`;
    }
    const frame = found.kind === "remote" ? this.context.pictureFrame : null;
    if (frame !== null) return this.#framed(found.url, frame);
    const picture = html`<img src=${found.url} alt=${this.alt} loading="lazy" decoding="async" referrerpolicy="no-referrer" ${styled(sizeOf(this))} @error=${() => this.#failed(found.url)} />`;
    if (this.inline) return picture;
    return html`<button type="button" class="arp-picture-button" aria-label="${t("enlarge")}: ${this.alt}" @click=${() => this.#enlarge()}>${picture}</button>
      ${this.isEnlarged ? this.#lightbox(html`<img src=${found.url} alt=${this.alt} referrerpolicy="no-referrer" />`) : nothing}`;
  }

  /** What is in its place: that it failed, what it was to show, and another try where one may help. */
  #broken(canRetry: boolean): unknown {
    const { t } = this.context;
    const retry = () => {
      this.#retried = "";
      this.isBroken = false;
    };
    return html`<span class="arp-picture-place arp-picture-failed">${icon("warning")}<span><strong>${t("imageFailed")}</strong>
      ${this.alt === "" ? nothing : html`<span dir="auto">${this.alt}</span>`}</span>
      ${canRetry ? html`<button type="button" class="arp-button arp-soft arp-small" @click=${retry}>${t("retry")}<span class="arp-hidden">: ${this.alt}</span></button>` : nothing}</span>`;
  }

  /** In a frame, which takes no keys and no clicks: what enlarges lies above it. */
  #framed(url: string, frame: string): unknown {
    void import("./picture_frame.js");
    const picture = (width: number | null, height: number | null) => html`<arp-picture-frame
      .frame=${frame} .source=${url} .alt=${this.alt} .width=${width} .height=${height} .fills=${this.fills} @arp-broken=${() => (this.isBroken = true)}
    ></arp-picture-frame>`;
    if (this.inline) return picture(this.width, this.height);
    return html`<span class="arp-picture-framed">${picture(this.width, this.height)}<button
        type="button" class="arp-picture-button" aria-label="${this.context.t("enlarge")}: ${this.alt}" @click=${() => this.#enlarge()}
      ></button></span>${this.isEnlarged ? this.#lightbox(picture(null, null)) : nothing}`;
  }

  #allow(host: string): void {
    allowed.add(host);
    for (const picture of document.querySelectorAll<ArpPicture>("arp-picture")) picture.requestUpdate();
    void this.updateComplete.then(() => this.querySelector<HTMLElement>("button")?.focus());
  }

  #enlarge(): void {
    this.isEnlarged = true;
    void this.updateComplete.then(() => this.querySelector("dialog")?.showModal());
  }

  /** A native modal dialog: it keeps the focus in, closes with Escape, and returns the focus back. */
  #lightbox(picture: unknown): unknown {
    const { t } = this.context;
    const close = () => this.querySelector("dialog")?.close();
    return html`<dialog class="arp-lightbox" aria-label=${this.alt} @close=${() => (this.isEnlarged = false)} @click=${(event: Event) => event.target === event.currentTarget && close()}>
      <button type="button" class="arp-icon-button" aria-label=${t("close")} title=${t("close")} @click=${close}>${icon("cross")}</button>
      ${picture}
    </dialog>`;
  }
}

/** The size of its place by style: as attributes the shield would take it for the host's. */
function sizeOf({ width, height }: ArpPicture): { readonly [property: string]: string } {
  return { ...(width && { width: `${width}px` }), ...(width && height && { "aspect-ratio": `${width} / ${height}` }) };
}

define("arp-picture", ArpPicture);
