/** A question that is answered with yes or no. */

import type { Json, JsonObject } from "@agent-rendering/core";
import { html, nothing } from "lit";
import { define } from "../base/element.js";
import { icon } from "../base/icons.js";
import { isObject, text } from "../base/values.js";
import { QuestionElement } from "./question.js";

/** `<arp-confirm>`: two buttons; the chosen one stays marked. */
export class ArpConfirm extends QuestionElement {
  protected override draw({ title, message, confirm_label: yes, deny_label: no, destructive }: JsonObject): unknown {
    const { t, given } = this;
    const taken = given == null ? null : isYes(given);
    const button = (value: boolean, label: string, looks: string) => html`<button
      type="button" class="arp-button ${looks}" ?disabled=${!this.open} data-taken=${taken === value ? "" : nothing} @click=${() => this.reply(value)}
    >${taken === value ? html`${icon("check")}<span class="arp-hidden">${t("answered")}: </span>` : nothing}<span dir="auto">${label}</span></button>`;
    return this.frame(
      title,
      message,
      html`<div class="arp-actions">
      ${button(true, text(yes) || t("confirm"), destructive === true ? "arp-danger" : "")}
      ${button(false, text(no) || t("deny"), "arp-soft")}
    </div>`,
      destructive === true ? "destructive" : "confirm",
    );
  }
}

/**
 * Return whether an answer confirms. Anything else counts as denied: showing an unknown answer as a confirmation would
 * claim a consent that was never given.
 */
function isYes(answer: Json): boolean {
  const chosen = isObject(answer) ? (answer.action ?? answer.confirmed) : answer;
  return chosen === true || chosen === "confirm";
}

define("arp-confirm", ArpConfirm);
