/** The welcome of a conversation without messages. */

import { html, nothing, type TemplateResult } from "lit";

import type { ArpContext } from "../../base/context.js";

/** The introduction of a conversation. */
export interface Introduction {
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  readonly suggestions?: readonly string[] | undefined;
  /** Address of a picture, or a short text. */
  readonly logo?: string | undefined;
}

/** The properties of a chat that introduce it. */
export interface HostIntroduction extends Omit<Introduction, "title"> {
  readonly heading?: string | undefined;
}

/** Return the host's introduction, with the server's for each field that the host leaves out. */
export function introduced(
  { heading, description, suggestions, logo }: HostIntroduction,
  server: Introduction,
): Introduction {
  return {
    title: heading ?? server.title,
    description: description ?? server.description,
    suggestions: suggestions ?? server.suggestions,
    logo,
  };
}

/** The welcome above and below the greeting of the app; without a greeting everything is in `before`. */
export interface Welcome {
  readonly before: TemplateResult;
  readonly after: unknown;
}

/** Return the welcome. A greeting of the app replaces the description, and the suggestions follow it. */
export function welcome(
  { title, description, suggestions = [], logo }: Introduction,
  { t }: ArpContext,
  say: (text: string) => void,
  picker: unknown = nothing,
  isGreeted = false,
): Welcome {
  const offers =
    suggestions.length === 0
      ? nothing
      : html`<ul class="arp-suggestions" aria-label=${t("suggestions")}>
          ${suggestions.map((text) => html`<li><button type="button" dir="auto" class="arp-suggestion" @click=${() => say(text)}>${text}</button></li>`)}
        </ul>`;
  const before = html`<section class="arp-welcome" ?data-greeted=${isGreeted} aria-labelledby="arp-greeting">
    ${picture(logo, "arp-logo")}
    <h2 id="arp-greeting" dir="auto">${title || t("greeting")}</h2>
    ${isGreeted ? nothing : html`<p class="arp-welcome-text" dir="auto">${description || (title ? t("greeting") : nothing)}</p>`}
    ${picker}
    ${isGreeted ? nothing : offers}
  </section>`;
  return { before, after: isGreeted ? html`<div class="arp-welcome arp-welcome-end">${offers}</div>` : nothing };
}

/** Return a picture by its address, or a short text such as an emoji, hidden from screen readers. */
export function picture(source: string | undefined, name: string): unknown {
  if (!source) return nothing;
  return /[/.]/.test(source)
    ? html`<img class=${name} src=${source} alt="" />`
    : html`<span class=${name} aria-hidden="true">${source}</span>`;
}
