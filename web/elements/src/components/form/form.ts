/** Fields that are sent together as one answer. */

import type { Json, JsonObject } from "@agent-rendering/core";
import { html, nothing, type PropertyDeclarations, type TemplateResult } from "lit";
import { repeat } from "lit/directives/repeat.js";
import type { AnswerFile } from "../../base/context.js";
import { define } from "../../base/element.js";
import { icon } from "../../base/icons.js";
import { addStyles } from "../../style/sheet.js";
import styles from "../../style/form.css?inline";
import { isObject, objects, text } from "../../base/values.js";
import { sentence } from "../../base/wrong.js";
import { faultOf, fieldOf, fieldRow, valueText, valueOf, type FormField } from "./field.js";
import { QuestionElement } from "../question.js";

/** `<arp-form>`: a native form. It is validated here, in the reader's language, and again by the server. */
export class ArpForm extends QuestionElement {
  static override properties: PropertyDeclarations = { faults: { state: true } };

  /** Errors of the last validation here, by name of the field. */
  declare faults: ReadonlyMap<string, string>;
  #refusal: unknown = null;

  constructor() {
    super();
    this.faults = new Map();
  }

  protected override draw({ title, description, fields, submit_label: label }: JsonObject): unknown {
    const { t } = this;
    const shown = objects(fields).flatMap((given) => fieldOf(given) ?? []);
    if (!this.open) return this.frame(title, description, this.#summary(shown), "form");
    const count = this.faults.size;
    return this.frame(
      title,
      description,
      html`<form novalidate @submit=${(event: Event) => this.#submit(event, shown)}>
      ${repeat(
        shown,
        ({ name }) => name,
        (field) => fieldRow(field, this.#idOf(field), this.#faultOf(field), t, () => this.#recheck(field)),
      )}
      <div class="arp-actions">
        <button type="submit" class="arp-button">${text(label) || t("submit")}</button>
        <span class="arp-note arp-error" role="alert">${count === 0 ? nothing : html`${icon("error")}<span>${t("fixErrors", { count })}</span>`}</span>
      </div>
    </form>`,
      "form",
    );
  }

  #idOf({ name }: FormField): string {
    return `${this.titleId}-${[...name].map((sign) => (/\w/.test(sign) ? sign : `-${(sign.codePointAt(0) as number).toString(16)}`)).join("")}`;
  }

  /** Return the error of a field, from the validation here or from the server. */
  #faultOf({ name }: FormField): string {
    const own = this.faults.get(name);
    if (own !== undefined) return own;
    const error = this.pending?.error;
    return error?.detail === `fields.${name}` ? sentence(error.error) : "";
  }

  #control(field: FormField): HTMLInputElement | null {
    return this.querySelector<HTMLInputElement>(`#${this.#idOf(field)}`);
  }

  /** Validate a field again if it has an error. Others wait for the submit: half-typed values are often invalid. */
  #recheck(field: FormField): void {
    const control = this.#control(field);
    if (control === null || !this.faults.has(field.name)) return;
    const fault = faultOf(field, control, this.t);
    const faults = new Map(this.faults);
    if (fault === "") faults.delete(field.name);
    else faults.set(field.name, fault);
    this.faults = faults;
  }

  #submit(event: Event, fields: readonly FormField[]): void {
    event.preventDefault();
    const faults = new Map<string, string>();
    const values: Record<string, Json> = {};
    const files: AnswerFile[] = [];
    for (const field of fields) {
      const control = this.#control(field);
      if (control === null) continue;
      const fault = faultOf(field, control, this.t);
      if (fault !== "") faults.set(field.name, fault);
      const value = valueOf(field, control);
      // A plain assignment to a field named `__proto__` would set the prototype and lose the value.
      if (value !== undefined) Object.defineProperty(values, field.name, { value, enumerable: true });
      if (field.kind === "file")
        for (const file of control.files ?? []) files.push({ part: `fields.${field.name}`, file });
    }
    this.faults = faults;
    const first = fields.find(({ name }) => faults.has(name));
    if (first === undefined) this.reply(values, files);
    else {
      this.context.announce(this.t("fixErrors", { count: faults.size }));
      void this.updateComplete.then(() => this.#control(first)?.focus());
    }
  }

  /** Move the focus to the field that a new refusal of the server names. */
  protected override drawn(): void {
    const error = this.pending?.error ?? null;
    if (error === this.#refusal) return;
    this.#refusal = error;
    const name = /^fields\.(.+)$/.exec(error?.detail ?? "")?.[1];
    if (name !== undefined) this.querySelector<HTMLElement>(`[name="${CSS.escape(name)}"]`)?.focus();
  }

  #summary(fields: readonly FormField[]): TemplateResult | typeof nothing {
    const { given, t } = this;
    if (!isObject(given)) return nothing;
    const rows = fields.flatMap((field) => {
      const value = Object.hasOwn(given, field.name) ? given[field.name] : undefined;
      const shownValue = valueText(field, value, t);
      return shownValue === ""
        ? []
        : [html`<div><dt dir="auto">${field.label}</dt><dd class="arp-plain" dir="auto">${shownValue}</dd></div>`];
    });
    return rows.length === 0 ? nothing : html`<dl class="arp-answers">${rows}</dl>`;
  }
}

addStyles(styles);
define("arp-form", ArpForm);
