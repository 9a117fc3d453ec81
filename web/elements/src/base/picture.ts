/**
 * A picture. A picture from another host waits for the reader's consent: without it, an agent could make the browser
 * send requests, and with their addresses data, to any host.
 */

import { html, nothing, type PropertyDeclarations } from "lit";
import { NOWHERE, type ArpContext } from "./context.js";
import { ArpElement, define } from "./element.js";
import { icon } from "./icons.js";
import "../style/content.js";
import { styled } from "./styled.js";
import { imageSource } from "./url.js";

/** Hosts that the reader has allowed to load pictures from, until the page is closed. */
const allowed = new Set<string>();

/** `<arp-picture>`: a picture, or the question whether to load it, or its alternative text after a failure. */
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
  /** Size in CSS pixels, or `null` if unknown; a known size reserves the space before the picture is loaded. */
  declare width: number | null;
  declare height: number | null;
  /** Whether the picture is in a line of text; then it cannot be enlarged. */
  declare inline: boolean;
  /** Whether the picture fills its place and is cropped to it. */
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

  /**
   * Handle a picture that failed to load. The cookie for files of the server expires after an hour, so for such a file
   * a new cookie is requested and the picture is loaded once more.
   */
  async #failed(url: string): Promise<void> {
    this.isBroken = true;
    const { client } = this.context;
    // Only once per address: a file that is gone would be requested again and again.
    if (client === null || this.#retried === url || !new URL(url, document.baseURI).pathname.includes("/_api/blobs/"))
      return;
    this.#retried = url;
    try {
      await client.sessions.openFiles();
      this.isBroken = false;
    } catch {
      // Without a new cookie the failure stays visible, with the alternative text and a retry button.
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

  /** Return the note about a failure: the alternative text, and a retry button if another try may help. */
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

  /** Return the picture in a frame. A frame swallows clicks and keys, so the button that enlarges it lies above it. */
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
    // The consent is for the host, so its other pictures load too.
    for (const picture of document.querySelectorAll<ArpPicture>("arp-picture")) picture.requestUpdate();
    void this.updateComplete.then(() => this.querySelector<HTMLElement>("button")?.focus());
  }

  #enlarge(): void {
    this.isEnlarged = true;
    void this.updateComplete.then(() => this.querySelector("dialog")?.showModal());
  }

  /** Return a native modal dialog: it traps the focus, closes with Escape, and then restores the focus. */
  #lightbox(picture: unknown): unknown {
    const { t } = this.context;
    const close = () => this.querySelector("dialog")?.close();
    return html`<dialog class="arp-lightbox" aria-label=${this.alt} @close=${() => (this.isEnlarged = false)} @click=${(event: Event) => event.target === event.currentTarget && close()}>
      <button type="button" class="arp-icon-button" aria-label=${t("close")} title=${t("close")} @click=${close}>${icon("cross")}</button>
      ${picture}
    </dialog>`;
  }
}

/** Return the size as styles. Attributes would count as styles of the host page, which `shield.css` resets. */
function sizeOf({ width, height }: ArpPicture): { readonly [property: string]: string } {
  return { ...(width && { width: `${width}px` }), ...(width && height && { "aspect-ratio": `${width} / ${height}` }) };
}

define("arp-picture", ArpPicture);
