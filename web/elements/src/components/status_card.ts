/** The result of something. */

import type { JsonObject } from "@agent-rendering/core";
import { html, nothing } from "lit";
import { ComponentElement } from "../base/component_element.js";
import { define } from "../base/element.js";
import { icon } from "../base/icons.js";
import { copyButton } from "../base/toolbar.js";
import { objects, oneOf, text } from "../base/values.js";

const STATES = ["info", "success", "error", "warning"] as const;
const STYLES = ["default", "code", "error", "success"] as const;

/** `<arp-status-card>`: a card that shows its state by colour, icon and word. */
export class ArpStatusCard extends ComponentElement {
  protected override draw({ status, title, message, sections }: JsonObject): unknown {
    const state = oneOf(status, STATES);
    const parts = objects(sections);
    return html`<section class="arp-card arp-status" data-state=${state}>
      <h3 class="arp-title">${icon(state)}<span class="arp-hidden">${this.t(state)}: </span><span dir="auto">${text(title)}</span></h3>
      ${text(message) === "" ? nothing : html`<p class="arp-plain arp-status-message" dir="auto">${text(message)}</p>`}
      ${parts.length === 0 ? nothing : html`<dl class="arp-sections">${parts.map((part) => this.#section(part))}</dl>`}
    </section>`;
  }

  #section({ label, content, style }: JsonObject): unknown {
    const kind = oneOf(style, STYLES);
    const shown =
      kind === "code"
        ? html`<div class="arp-section-code"><pre dir="ltr" tabindex="0" role="group" aria-label=${text(label) || this.t("code")}>${text(content)}</pre>${copyButton(this.context, this.t("copy"), () => text(content))}</div>`
        : html`<p class="arp-plain" data-state=${kind}>${kind === "default" ? nothing : html`${icon(kind)}<span class="arp-hidden">${this.t(kind)}: </span>`}<span dir="auto">${text(content)}</span></p>`;
    return html`<div><dt dir="auto">${text(label)}</dt><dd>${shown}</dd></div>`;
  }
}

define("arp-status-card", ArpStatusCard);
