/** A picture with a caption. */

import type { Json, JsonObject } from "@agent-rendering/core";
import { html, nothing } from "lit";
import { ComponentElement } from "../base/component_element.js";
import { define } from "../base/element.js";
import { number, text } from "../base/values.js";

/** `<arp-image>`: picture and caption; `<arp-picture>` asks for consent where that is needed. */
export class ArpImage extends ComponentElement {
  protected override draw({ src, alt, width, height, caption }: JsonObject): unknown {
    return html`<figure class="arp-figure">
      <arp-picture .source=${text(src)} .alt=${text(alt)} .width=${size(width)} .height=${size(height)} .context=${this.context}></arp-picture>
      ${text(caption) === "" ? nothing : html`<figcaption class="arp-note" dir="auto">${text(caption)}</figcaption>`}
    </figure>`;
  }
}

/** Return a width or height in whole pixels; `null` if it is not from 1 to 10,000. */
function size(value: Json | undefined): number | null {
  const found = number(value);
  return found !== null && found >= 1 && found <= 10_000 ? Math.round(found) : null;
}

define("arp-image", ArpImage);
