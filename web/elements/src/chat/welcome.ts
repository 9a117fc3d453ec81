/** What shows before the first word. */

import { html, nothing, type TemplateResult } from "lit";

import type { ArpContext } from "../context.js";

/** The introduction of a conversation. */
export interface Introduction {
  readonly title?: string;
  readonly description?: string;
  readonly suggestions?: readonly string[];
  /** Address of a picture, or a short text. */
  readonly logo?: string;
}

/** The host's introduction, else the server's. */
export function introduced(
  { heading, description, suggestions, logo }: { heading?: string | undefined; description?: string | undefined; suggestions?: readonly string[] | undefined; logo?: string | undefined },
  introduction: Introduction | null,
): Introduction {
  return {
    title: heading ?? introduction?.title ?? "",
    description: description ?? introduction?.description ?? "",
    suggestions: suggestions ?? introduction?.suggestions ?? [],
    logo: logo ?? "",
  };
}

export function welcome(
  { title, description, suggestions = [], logo }: Introduction,
  { t }: ArpContext,
  say: (text: string) => void,
  picker: unknown = nothing,
): TemplateResult {
  return html`<section class="arp-welcome" aria-labelledby="arp-greeting">
    ${picture(logo, "arp-logo")}
    <h2 id="arp-greeting" dir="auto">${title || t("greeting")}</h2>
    <p class="arp-welcome-text" dir="auto">${description || (title ? t("greeting") : nothing)}</p>
    ${picker}
    ${suggestions.length === 0
      ? nothing
      : html`<ul class="arp-suggestions" aria-label=${t("suggestions")}>
          ${suggestions.map((text) => html`<li><button type="button" dir="auto" class="arp-suggestion" @click=${() => say(text)}>${text}</button></li>`)}
        </ul>`}
  </section>`;
}

/** A picture by its address, or a short text such as an emoji; for the eye alone. */
export function picture(source: string | undefined, name: string): unknown {
  if (!source) return nothing;
  return /[/.]/.test(source) ? html`<img class=${name} src=${source} alt="" />` : html`<span class=${name} aria-hidden="true">${source}</span>`;
}
