/** The components `text` and `markdown`. */

import type { JsonObject } from "@agent-rendering/core";
import { html } from "lit";
import { ComponentElement } from "../base/component_element.js";
import { define } from "../base/element.js";
import { text } from "../base/values.js";

/** `<arp-text>`: plain text, or Markdown if its `format` is `markdown`. */
export class ArpText extends ComponentElement {
  protected override draw({ content, format }: JsonObject): unknown {
    if (format === "markdown")
      return html`<arp-prose .text=${text(content)} .streaming=${this.context.streaming} .context=${this.context}></arp-prose>`;
    return html`<p class="arp-plain" dir="auto">${text(content)}</p>`;
  }
}

/** `<arp-markdown>`: Markdown. */
export class ArpMarkdown extends ComponentElement {
  protected override draw({ content }: JsonObject): unknown {
    return html`<arp-prose .text=${text(content)} .streaming=${this.context.streaming} .context=${this.context}></arp-prose>`;
  }
}

define("arp-text", ArpText);
define("arp-markdown", ArpMarkdown);
