/** A choice of one option, or of several. */

import type { Json, JsonObject } from "@agent-rendering/core";
import { html, nothing, type PropertyDeclarations } from "lit";
import { define } from "../base/element.js";
import { givenIcon, icon } from "../base/icons.js";
import { isObject, list, oneOf, text } from "../base/values.js";
import { QuestionElement } from "./question.js";

/** One option with all defaults filled in. */
interface Choice {
  readonly label: string;
  readonly value: Json;
  readonly description: string;
  readonly icon: string;
  readonly isDisabled: boolean;
}

const STYLES = ["buttons", "list", "cards"] as const;

/** `<arp-choices>`: one button per option, or with `multi_select` checkboxes and a submit button. */
export class ArpChoices extends QuestionElement {
  static override properties: PropertyDeclarations = { ticked: { state: true } };

  declare ticked: readonly number[];

  constructor() {
    super();
    this.ticked = [];
  }

  protected override draw({ title, options, style, multi_select: isMulti }: JsonObject): unknown {
    const choices = list(options).map(choiceOf);
    const kind = oneOf(style, STYLES);
    const controls = html`<div class="arp-options" data-style=${kind}>
      ${choices.map((choice, at) => (isMulti === true ? this.#box(choice, at) : this.#button(choice)))}
    </div>
    ${isMulti === true && (this.open || this.sent !== null) ? this.#submit(choices) : nothing}`;
    return this.frame(title, "", controls, "choices");
  }

  #isTaken(value: Json): boolean {
    const { given } = this;
    const taken = isObject(given) ? list(given.selected) : Array.isArray(given) ? given : given == null ? [] : [given];
    return taken.some((one) => one === value);
  }

  #button(choice: Choice): unknown {
    const isTaken = this.#isTaken(choice.value);
    return html`<button
      type="button" class="arp-button arp-soft arp-option" ?disabled=${!this.open || choice.isDisabled} data-taken=${isTaken ? "" : nothing}
      @click=${() => this.reply([choice.value])}
    >${this.#face(choice, isTaken)}</button>`;
  }

  #box(choice: Choice, at: number): unknown {
    const isTaken = this.open ? this.ticked.includes(at) : this.#isTaken(choice.value);
    return html`<label class="arp-option arp-option-box" data-taken=${isTaken ? "" : nothing} data-disabled=${choice.isDisabled || !this.open ? "" : nothing}>
      <input type="checkbox" .checked=${isTaken} ?disabled=${!this.open || choice.isDisabled} @change=${() => this.#tick(at)} />
      ${this.#face(choice, false)}
    </label>`;
  }

  #face({ label, description, icon: sign }: Choice, isTaken: boolean): unknown {
    const mark = isTaken ? icon("check") : givenIcon(sign);
    return html`${mark === "" ? nothing : html`<span class="arp-option-icon" aria-hidden="true">${mark}</span>`}
      <span class="arp-option-text" dir="auto">${isTaken ? html`<bdi class="arp-hidden">${this.t("answered")}: </bdi>` : nothing}<span>${label}</span>
      ${description === "" ? nothing : html`<span class="arp-note">${description}</span>`}</span>`;
  }

  #tick(at: number): void {
    this.ticked = this.ticked.includes(at) ? this.ticked.filter((one) => one !== at) : [...this.ticked, at];
  }

  #submit(choices: readonly Choice[]): unknown {
    const { t, ticked } = this;
    const values = () =>
      [...ticked].sort((one, other) => one - other).flatMap((at) => (choices[at] ? [choices[at].value] : []));
    return html`<div class="arp-actions">
      <button type="button" class="arp-button" ?disabled=${!this.open || ticked.length === 0} @click=${() => this.reply(values())}>${t("submit")}</button>
      <span class="arp-note" role="status">${ticked.length === 0 ? nothing : t("chosen", { count: ticked.length })}</span>
    </div>`;
  }
}

/** Return an option from its props; a plain value is label and value in one. */
function choiceOf(given: Json): Choice {
  const {
    label,
    value,
    description,
    icon: sign,
    disabled,
  }: JsonObject = isObject(given) ? given : { label: text(given) };
  return {
    label: text(label),
    value: value ?? text(label),
    description: text(description),
    icon: text(sign),
    isDisabled: disabled === true,
  };
}

define("arp-choices", ArpChoices);
