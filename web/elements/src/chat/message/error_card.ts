/** The error of a turn, in a card with a button to try again. Under `arp serve --debug` it has details in a fold. */

import { html, nothing, type TemplateResult } from "lit";

import type { ArpContext } from "../../base/context.js";
import { copyButton } from "../../base/toolbar.js";
import { visible, withoutCodes } from "../../base/values.js";
import { wrong } from "../../base/wrong.js";
import { icon } from "../icons.js";
import type { Block } from "@agent-rendering/core/timeline";

/** Return the card. `retry` runs the turn again; a hint for the author of the agent (`debug`) has no such button. */
export function errorCard(
  { error, details }: Extract<Block, { kind: "error" }>,
  context: ArpContext,
  retry: (() => void) | null = null,
): TemplateResult {
  const { t } = context;
  const { detail, debug } = error;
  const more = detail == null ? "" : typeof detail === "string" ? detail : JSON.stringify(detail);
  return html`<div class="arp-trouble" role="group" aria-label=${t("error")}>
    ${icon("alert")}
    <p dir="auto">${wrong(error, t)}${more ? html` <span class="arp-caption">${visible(withoutCodes(more))}</span>` : nothing}</p>
    ${retry && debug == null ? html`<button type="button" class="arp-button arp-soft" @click=${retry}>${t("retry")}</button>` : nothing}
    ${
      details === null
        ? nothing
        : html`<details>
          <summary>${t("details")}</summary>
          <div class="arp-trouble-details">
            <pre tabindex="0" dir="ltr" role="region" aria-label=${t("details")}>${visible(withoutCodes(details))}</pre>
            ${copyButton(context, t("copy"), () => withoutCodes(details))}
          </div>
        </details>`
    }
  </div>`;
}
