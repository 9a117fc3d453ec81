/** One field of a form: its control, its value, and its validation. */

import type { Json, JsonObject } from "@agent-rendering/core";
import { html, nothing, type TemplateResult } from "lit";
import type { Translate } from "../../base/context.js";
import { icon } from "../../base/icons.js";
import { isObject, list, number, oneOf, text } from "../../base/values.js";

const KINDS = ["text", "textarea", "select", "checkbox", "number", "date", "email", "password", "file"] as const;

/** An option of a `select`. */
export interface FieldChoice {
  readonly label: string;
  readonly value: Json;
}

/** A field with all defaults filled in. */
export interface FormField {
  readonly name: string;
  readonly label: string;
  readonly kind: (typeof KINDS)[number];
  readonly value: Json;
  readonly choices: readonly FieldChoice[];
  readonly isRequired: boolean;
  readonly placeholder: string;
  readonly rules: JsonObject;
}

type Control = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement;

/** Return a field from its props; `null` without a name, because its value could not be sent. */
export function fieldOf(given: JsonObject): FormField | null {
  const name = text(given.name);
  if (name === "") return null;
  return {
    name,
    label: text(given.label) || name,
    kind: oneOf(given.field_type, KINDS),
    value: given.value ?? null,
    choices: list(given.options).map((option) => {
      const label = text(isObject(option) ? option.label : option);
      return { label, value: (isObject(option) ? option.value : option) ?? label };
    }),
    isRequired: given.required === true,
    placeholder: text(given.placeholder),
    rules: isObject(given.validation) ? given.validation : {},
  };
}

/** Return the value of a control; `undefined` if nothing was entered. */
export function valueOf({ kind, choices }: FormField, control: Control): Json | undefined {
  if (kind === "checkbox") return (control as HTMLInputElement).checked;
  if (kind === "file" || control.value === "") return undefined;
  if (kind === "select") return choices[Number(control.value)]?.value;
  return kind === "number" ? (control as HTMLInputElement).valueAsNumber : control.value;
}

/** Return what is wrong with a value, in the reader's language; empty if it is valid. */
export function faultOf({ kind, rules }: FormField, control: Control, t: Translate): string {
  const { validity } = control;
  const count = [...control.value].length;
  if (validity.valueMissing) return t("required");
  const ruleMessage = text(rules.message);
  if (validity.badInput || (kind === "number" && control.value !== "" && Number.isNaN(Number(control.value)))) {
    return ruleMessage || t(kind === "date" ? "invalidDate" : "invalidNumber");
  }
  if (validity.typeMismatch) return ruleMessage || t("invalidEmail");
  if (validity.rangeUnderflow) return ruleMessage || t("tooSmall", { limit: limitOf(rules.min, kind, t) });
  if (validity.rangeOverflow) return ruleMessage || t("tooLarge", { limit: limitOf(rules.max, kind, t) });
  if (control.value === "") return "";
  if (kind === "number" && isRounded(control.value)) {
    const [word, limit] = control.value.startsWith("-")
      ? (["tooSmall", Number.MIN_SAFE_INTEGER] as const)
      : (["tooLarge", Number.MAX_SAFE_INTEGER] as const);
    return ruleMessage || t(word, { limit: t.number(limit) });
  }
  const [least, most] = [number(rules.min_length), number(rules.max_length)];
  if (least !== null && count < least) return ruleMessage || t("tooShort", { count: least });
  return most !== null && count > most ? ruleMessage || t("tooLong", { count: most }) : "";
}

/**
 * Return whether a number would be sent with other digits than the user entered. A very large number with an exponent
 * is accepted, because it is an approximation anyway.
 */
function isRounded(written: string): boolean {
  const size = Math.abs(Number(written));
  return size > Number.MAX_SAFE_INTEGER && (size < 1e21 || !/e/i.test(written));
}

/** Return a limit as text, for a message. */
function limitOf(limit: Json | undefined, kind: FormField["kind"], t: Translate): string {
  if (kind === "date") return t.date(`${text(limit)}T12:00:00`, { dateStyle: "medium" }) || text(limit);
  return typeof limit === "number" ? t.number(limit) : text(limit);
}

/** Return a value as text, for the summary of an answered form. */
export function valueText({ kind, choices }: FormField, value: Json | undefined, t: Translate): string {
  if (kind === "password") return value == null ? "" : "••••••";
  if (typeof value === "boolean") return t(value ? "confirm" : "deny");
  if (isObject(value)) return text(value.name);
  if (kind === "date" && typeof value === "string")
    return t.date(`${value}T12:00:00`, { dateStyle: "medium" }) || value;
  if (kind === "select") return choices.find((choice) => choice.value === value)?.label ?? text(value);
  return typeof value === "number" ? t.number(value, { maximumFractionDigits: 20, useGrouping: false }) : text(value);
}

/** Return whether a field is a `select` with a valid initial value. */
function isChosen({ kind, choices, value }: FormField): boolean {
  return kind === "select" && choices.some((choice) => choice.value === value);
}

/** Return a labelled control with its error. `check` is called when the value changes. */
export function fieldRow(field: FormField, id: string, fault: string, t: Translate, check: () => void): TemplateResult {
  const hint = field.kind === "password" ? t("secretHint") : "";
  const described = [fault && `${id}-fault`, hint && `${id}-hint`].filter(Boolean).join(" ") || nothing;
  const label = html`<label for=${id} dir="auto">${field.label}${field.isRequired && !isChosen(field) ? html`<span class="arp-required" aria-hidden="true"> *</span>` : nothing}</label>`;
  const control = controlOf(field, id, fault !== "", described, check);
  return html`<div class="arp-field" data-kind=${field.kind}>
    ${field.kind === "checkbox" ? html`<div class="arp-tick">${control}${label}</div>` : html`${label}${control}`}
    ${hint === "" ? nothing : html`<p class="arp-note" id="${id}-hint">${hint}</p>`}
    <p class="arp-note arp-error" id="${id}-fault" ?hidden=${fault === ""}>${icon("error")}<span>${fault}</span></p>
  </div>`;
}

// The initial value is set by the attributes `value` and `checked` (`defaultValue` in a textarea), which do not change
// a control that the user has edited. With the properties, drawing the form again could overwrite what was typed.
function controlOf(
  field: FormField,
  id: string,
  isWrong: boolean,
  described: string | typeof nothing,
  check: () => void,
): TemplateResult {
  const { name, kind, value, choices, isRequired, placeholder, rules } = field;
  const invalid = isWrong ? "true" : nothing;
  const hint = placeholder || nothing;
  switch (kind) {
    case "textarea":
      return html`<textarea class="arp-input" rows="4" dir="auto" id=${id} name=${name} ?required=${isRequired} placeholder=${hint} aria-invalid=${invalid} aria-describedby=${described} @input=${check} .defaultValue=${text(value)}></textarea>`;
    case "select":
      return html`<select class="arp-input" id=${id} name=${name} ?required=${isRequired} aria-invalid=${invalid} aria-describedby=${described} @change=${check}>
        ${isRequired && isChosen(field) ? nothing : html`<option value="">${placeholder || "–"}</option>`}
        ${choices.map((choice, at) => html`<option value=${at} ?selected=${choice.value === value}>${choice.label}</option>`)}
      </select>`;
    case "checkbox":
      return html`<input type="checkbox" id=${id} name=${name} ?required=${isRequired} ?checked=${value === true} aria-invalid=${invalid} aria-describedby=${described} @change=${check} />`;
    case "file":
      return html`<input class="arp-input" type="file" id=${id} name=${name} ?required=${isRequired} aria-invalid=${invalid} aria-describedby=${described} @change=${check} />`;
    default: {
      const isBounded = kind === "number" || kind === "date";
      return html`<input
        class="arp-input" type=${kind} id=${id} name=${name} dir="auto" step=${kind === "number" ? "any" : nothing}
        min=${isBounded && rules.min != null ? text(rules.min) : nothing} max=${isBounded && rules.max != null ? text(rules.max) : nothing}
        ?required=${isRequired} placeholder=${hint} value=${text(value) || nothing} autocomplete=${kind === "email" ? "email" : "off"}
        aria-invalid=${invalid} aria-describedby=${described} @input=${check}
      />`;
    }
  }
}
