/**
 * A picture from another host in a frame of its own, for pages that forbid such pictures by their content security
 * policy. The document of the frame comes from the server of the page, and may fetch this picture and nothing else.
 */

import { html, nothing, type PropertyDeclarations, type PropertyValues } from "lit";
import { ArpElement, define } from "./element.js";
import "../style/content.js";
import styles from "../style/picture_frame.css?inline";
import { addStyles } from "../style/sheet.js";
import { styled } from "./styled.js";

/** Assumed width and height in pixels until the size of the picture is known. */
const GUESSED = [320, 180] as const;
const LARGEST_PX = 20_000;

/** `<arp-picture-frame>`; dispatches `arp-broken` if the picture could not be loaded. */
export class ArpPictureFrame extends ArpElement {
  static override properties: PropertyDeclarations = {
    frame: { attribute: false },
    source: { attribute: false },
    alt: { attribute: false },
    width: { attribute: false },
    height: { attribute: false },
    fills: { attribute: false },
    size: { state: true },
  };

  /** Address of the frame's document; it accepts the query parameters `src` and `fit`. */
  declare frame: string;
  declare source: string;
  declare alt: string;
  /** Size in CSS pixels; `null` if it is unknown before the picture is loaded. */
  declare width: number | null;
  declare height: number | null;
  /** Whether the picture fills its place and is cropped to it. */
  declare fills: boolean;
  /** Width and height of the loaded picture in pixels; `null` before that. */
  declare protected size: readonly [number, number] | null;

  constructor() {
    super();
    Object.assign(this, { frame: "", source: "", alt: "", width: null, height: null, fills: false, size: null });
  }

  override connectedCallback(): void {
    super.connectedCallback();
    addEventListener("message", this.#receive);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    removeEventListener("message", this.#receive);
  }

  /**
   * Receive the size of the picture from the frame. Any window can post messages to this page, so only those of this
   * frame count, and only a plausible size is accepted.
   */
  #receive = ({ source, data }: MessageEvent<unknown>): void => {
    const frame = this.querySelector("iframe");
    if (frame === null || source !== frame.contentWindow) return;
    const measured = (data as { arpPicture?: unknown } | null)?.arpPicture;
    if (measured === null) this.dispatchEvent(new Event("arp-broken"));
    else if (isSize(measured)) this.size = measured;
  };

  protected override willUpdate(changed: PropertyValues): void {
    if (changed.has("source")) this.size = null;
  }

  protected override render(): unknown {
    const [natural, tall] = this.size ?? GUESSED;
    const isGiven = this.width !== null && this.height !== null;
    const width = this.width ?? (this.height !== null ? (this.height * natural) / tall : natural);
    const height = this.height ?? (width * tall) / natural;
    const shape = isGiven || this.size !== null ? { "aspect-ratio": `${width} / ${height}` } : {};
    const address = `${this.frame}?src=${encodeURIComponent(this.source)}${this.fills ? "&fit=cover" : ""}`;
    return html`<iframe role="img" title=${this.alt || nothing} tabindex="-1" sandbox="allow-scripts" referrerpolicy="no-referrer" loading="lazy" src=${address} width=${Math.round(width)} height=${Math.round(height)} ${styled(this.fills ? {} : shape)}></iframe>`;
  }
}

/** Return whether a message is a plausible size: width and height from 1 to `LARGEST_PX`. */
function isSize(measured: unknown): measured is readonly [number, number] {
  return (
    Array.isArray(measured) &&
    measured.length === 2 &&
    measured.every((side) => typeof side === "number" && side >= 1 && side <= LARGEST_PX)
  );
}

addStyles(styles);
define("arp-picture-frame", ArpPictureFrame);
