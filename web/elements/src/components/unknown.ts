/** A component of an unknown type without a fallback. */

import type { JsonObject } from "@agent-rendering/core";
import { html } from "lit";
import { ComponentElement } from "../base/component_element.js";
import { define } from "../base/element.js";
import { icon } from "../base/icons.js";

/** `<arp-unknown>`: a card that says that the component cannot be shown, with its type and props under "details". */
export class ArpUnknown extends ComponentElement {
  protected override draw(props: JsonObject): unknown {
    const { t } = this;
    if (this.component) this.context.present(this.component, "failed");
    return html`<section class="arp-card arp-failure">
      <p>${icon("info")}<span>${t("cannotShow")}</span></p>
      <details>
        <summary>${t("details")}</summary>
        <pre tabindex="0" dir="ltr" aria-label=${t("details")}>${this.component?.type} ${JSON.stringify(props, null, 2)}</pre>
      </details>
    </section>`;
  }
}

define("arp-unknown", ArpUnknown);
