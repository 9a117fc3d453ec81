/** Named values. */

import type { JsonObject } from "@agent-rendering/core";
import { html, nothing } from "lit";
import { ComponentElement } from "../base/component_element.js";
import { define } from "../base/element.js";
import { icon, type IconName } from "../base/icons.js";
import { withoutNoise } from "./table/figures.js";
import { copyButton } from "../base/toolbar.js";
import { freshId, objects, oneOf, text } from "../base/values.js";

const STYLES = ["default", "success", "error", "warning", "muted"] as const;

/** `<arp-key-value>`: a `<dl>` with a copy button for each value. */
export class ArpKeyValue extends ComponentElement {
  readonly #id = freshId("facts");

  protected override draw({ title, items }: JsonObject): unknown {
    const heading = text(title);
    const shown = objects(items);
    return html`<section class="arp-card arp-facts" role="group" aria-labelledby=${heading ? this.#id : nothing}>
      ${heading ? html`<h3 class="arp-title" id=${this.#id} dir="auto">${heading}</h3>` : nothing}
      ${shown.length === 0 ? nothing : html`<dl>${shown.map((item) => this.#item(item))}</dl>`}
    </section>`;
  }

  #item({ key, value, style }: JsonObject): unknown {
    const kind = oneOf(style, STYLES);
    const shownValue =
      typeof value === "number" ? this.t.number(withoutNoise(value), { maximumFractionDigits: 20 }) : text(value);
    const isNamed = kind !== "default" && kind !== "muted";
    return html`<div data-state=${kind}>
      <dt dir="auto">${text(key)}</dt>
      <dd>
        ${isNamed ? html`${icon(kind as IconName)}<span class="arp-hidden">${this.t(kind)}: </span>` : nothing}
        <span class="arp-plain" dir="auto">${shownValue === "" ? "–" : shownValue}</span>
        ${shownValue === "" ? nothing : copyButton(this.context, `${this.t("copy")}: ${text(key)}`, () => text(value))}
      </dd>
    </div>`;
  }
}

define("arp-key-value", ArpKeyValue);
