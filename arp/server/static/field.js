/** One field of a form: its control, label and error, and what it answers. */

import { asList, asText, el, setAttribute, setText, uniqueId } from "./dom.js";
import { optionLabel, optionValue } from "./readable.js";

const INPUT_TYPES = {
  number: "number",
  date: "date",
  email: "email",
  password: "password",
  file: "file",
};
const SECRET_HINT = "The agent asks for this. Enter it only if you trust the agent with it.";

/** A labelled control. `value()` gives its answer, undefined when it is left empty. */
export class FieldView {
  #id = uniqueId("field");
  #error = el("p", { class: "error", id: `${this.#id}-error`, hidden: true });

  constructor(field) {
    this.field = field;
    this.name = asText(field.name);
    this.control = this.#control();
    this.node = this.#row();
    this.fill(field.value);
    this.control.addEventListener("input", () => this.control.ariaInvalid && this.check());
  }

  /** What the user reads for this field. */
  get label() {
    return asText(this.field.label) || this.name;
  }

  /** A value in words, "" for none. */
  said(value) {
    if (typeof value === "boolean") return value ? "Yes" : "No";
    if (this.field.field_type === "file") return asText(value?.name);
    return value == null ? "" : optionLabel(this.field.options, value);
  }

  /** The files chosen, for a file field. */
  get files() {
    return this.field.field_type === "file" ? [...this.control.files] : [];
  }

  /** True while an error stands at this field. */
  get wrong() {
    return !this.#error.hidden;
  }

  /** Puts a value into the control, as the agent or an earlier answer gave it. */
  fill(value) {
    const kind = this.field.field_type;
    if (kind === "checkbox") this.control.checked = value === true;
    else if (kind === "select") this.control.value = this.#indexOf(value);
    else if (kind !== "file") this.control.value = asText(value);
  }

  /** The answer: of the type that the field has. */
  value() {
    const kind = this.field.field_type;
    if (kind === "checkbox") return this.control.checked;
    if (kind === "file") return undefined;
    if (kind === "select" && this.control.value)
      return optionValue(this.field.options[Number(this.control.value)]);
    if (this.control.value === "") return kind === "text" || kind === "textarea" ? "" : undefined;
    return kind === "number" ? this.control.valueAsNumber : this.control.value;
  }

  /** Checks as the browser does, and shows what is wrong; true when nothing is. */
  check() {
    const valid = this.control.checkValidity();
    const told = asText(this.field.validation?.message);
    this.complain(
      valid ? "" : (!this.control.validity.valueMissing && told) || this.control.validationMessage,
    );
    return valid;
  }

  /** Shows an error at this field, or with "" takes it away. */
  complain(text) {
    setText(this.#error, text);
    this.#error.hidden = !text;
    setAttribute(this.control, "aria-invalid", text ? "true" : null);
    const described = [text && this.#error.id, this.#hint() && `${this.#id}-hint`]
      .filter(Boolean)
      .join(" ");
    setAttribute(this.control, "aria-describedby", described || null);
  }

  /** The place of an option as the control's value; "" when no option has this value. */
  #indexOf(value) {
    const index = asList(this.field.options).findIndex((option) => optionValue(option) === value);
    return index < 0 ? "" : String(index);
  }

  #hint() {
    return this.field.field_type === "password" ? SECRET_HINT : "";
  }

  #control() {
    const { field_type: kind, placeholder, required, options } = this.field;
    const props = {
      id: this.#id,
      name: this.name,
      required: Boolean(required),
      placeholder: asText(placeholder) || null,
      ...this.#bounds(),
    };
    if (kind === "textarea") return el("textarea", { ...props, rows: "3", dir: "auto" });
    if (kind === "select") {
      const choose = el("option", { value: "" }, "Choose…");
      return el(
        "select",
        props,
        choose,
        asList(options).map((option, index) =>
          el("option", { value: String(index) }, optionLabel([option], optionValue(option))),
        ),
      );
    }
    if (kind === "checkbox") return el("input", { ...props, type: "checkbox", placeholder: null });
    const autocomplete = kind === "password" ? "off" : null;
    const step = kind === "number" ? "any" : null;
    return el("input", {
      ...props,
      type: INPUT_TYPES[kind] ?? "text",
      dir: "auto",
      autocomplete,
      step,
    });
  }

  #bounds() {
    const { min, max, min_length: shortest, max_length: longest } = this.field.validation ?? {};
    return { min, max, minlength: shortest, maxlength: longest };
  }

  #row() {
    const { field_type: kind, required } = this.field;
    const words = el(
      "label",
      { for: this.#id, dir: "auto" },
      this.label,
      required && el("span", { "class": "star", "aria-hidden": "true" }, " *"),
    );
    const hint = this.#hint() && el("p", { class: "hint", id: `${this.#id}-hint` }, this.#hint());
    const parts =
      kind === "checkbox"
        ? [el("div", { class: "check" }, this.control, words)]
        : [words, this.control];
    return el("div", { class: "field" }, parts, hint, this.#error);
  }
}
