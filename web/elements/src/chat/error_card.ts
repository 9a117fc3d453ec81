/** What went wrong, in one quiet card, with a way to go on. */

import type { ErrorPayload } from "@agent-rendering/core";
import { html, nothing, type TemplateResult } from "lit";

import type { ArpContext } from "../context.js";
import { icon } from "./icons.js";
import { visible } from "../values.js";
import { wrong } from "../wrong.js";

export function errorCard(error: ErrorPayload, context: ArpContext, retry: (() => void) | null = null): TemplateResult {
  const { t } = context;
  const { detail, debug } = error;
  const more = detail == null ? "" : typeof detail === "string" ? detail : JSON.stringify(detail);
  return html`<div class="arp-trouble" role="group" aria-label=${t("error")}>
    ${icon("alert")}
    <p dir="auto">${wrong(error, t)}${more ? html` <span class="arp-caption">${visible(more)}</span>` : nothing}</p>
    ${debug == null
      ? nothing
      : html`<details>
          <summary>${t("details")}</summary>
          <pre tabindex="0" dir="ltr" aria-label=${t("details")}>${visible(debug)}</pre>
        </details>`}
    ${retry && debug == null ? html`<button type="button" class="arp-button arp-soft" @click=${retry}>${t("retry")}</button>` : nothing}
  </div>`;
}
