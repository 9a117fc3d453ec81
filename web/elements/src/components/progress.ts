/** Steps with their states. */

import type { JsonObject } from "@agent-rendering/core";
import { html, nothing } from "lit";
import { ComponentElement } from "../base/component_element.js";
import { define } from "../base/element.js";
import { icon } from "../base/icons.js";
import { freshId, objects, oneOf, text, visible, withoutCodes } from "../base/values.js";

const STATES = ["pending", "active", "done", "failed"] as const;
const SIGNS = { pending: "pending", active: "active", done: "success", failed: "error" } as const;

/** `<arp-progress>`: an ordered list with a word for each state, and a progress bar above it. */
export class ArpProgress extends ComponentElement {
  readonly #id = freshId("steps");

  protected override draw({ title, steps }: JsonObject): unknown {
    const { t } = this;
    const shown = objects(steps);
    const heading = text(title);
    const done = shown.filter(({ status }) => status === "done").length;
    const summary = t("stepsDone", { done, all: shown.length });
    const hasFailed = shown.some(({ status }) => status === "failed");
    return html`<section class="arp-card arp-steps" role="group" data-failed=${String(hasFailed)}>
      <header>
        ${heading ? html`<h3 class="arp-title" id=${this.#id} dir="auto">${heading}</h3>` : nothing}
        <span class="arp-note" aria-hidden="true">${summary}</span>
      </header>
      <progress class="arp-bar" max=${Math.max(1, shown.length)} .value=${done} aria-label=${[heading, summary].filter(Boolean).join(": ")}></progress>
      ${shown.length === 0 ? nothing : html`<ol>${shown.map((step) => this.#step(step))}</ol>`}
    </section>`;
  }

  #step({ name, status, detail }: JsonObject): unknown {
    const state = oneOf(status, STATES);
    return html`<li data-state=${state} aria-current=${state === "active" ? "step" : nothing}>
      ${icon(SIGNS[state])}
      <span dir="auto"><span class="arp-step-name">${text(name)}</span><bdi class="arp-hidden">, ${this.t(state)}</bdi>
      ${text(detail) === "" ? nothing : html`<span class="arp-note">${visible(withoutCodes(text(detail)))}</span>`}</span>
    </li>`;
  }
}

define("arp-progress", ArpProgress);
