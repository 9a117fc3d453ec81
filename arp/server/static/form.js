/**
 * The view of a `form`: fields that are sent together as `form_submit`. What the user typed stays
 * when the form is patched; once answered it shows the answer and takes no more.
 */

import { asList, asText, el, setText } from "./dom.js";
import { FieldView } from "./field.js";
import { QuestionFrame } from "./questions.js";

/** A form is a question that is answered by many fields. */
export class FormView {
  #frame;
  #fields = [];
  #drawn = null;
  #refusal = null;
  #set = el("fieldset", {});
  #submit = el("button", { type: "submit" });
  #actions = el("div", { class: "actions" }, this.#submit);
  #summary = el("dl", { class: "summary" });

  constructor(answers) {
    this.#frame = new QuestionFrame(answers, "form");
    this.node = this.#frame.node;
    this.node.noValidate = true;
    this.node.addEventListener("submit", (event) => this.#send(event));
    this.#frame.body.append(this.#set, this.#actions, this.#summary);
  }

  update(component) {
    const { props } = component;
    this.component = component;
    const { locked, state } = this.#frame.update(component, props.description, "Form");
    if (this.#drawn !== props.fields) this.#build(props.fields);
    if (state === "answered") this.#summarise(props.answer);
    this.#set.disabled = locked;
    this.#set.hidden = state === "answered";
    this.#summary.hidden = state !== "answered";
    this.#actions.hidden = state !== "open";
    this.#submit.disabled = locked;
    setText(this.#submit, asText(props.submit_label) || "Send");
    this.#showRefusal();
    this.#frame.error.hidden ||= this.#fields.some((field) => field.wrong);
  }

  /** Draws the fields anew; what was typed and the focus go along by name. */
  #build(fields) {
    const typed = new Map(this.#fields.map((field) => [field.name, field]));
    const focused = this.#fields.find((field) => field.control === document.activeElement)?.name;
    this.#drawn = fields;
    this.#fields = asList(fields).map((field) => {
      const before = typed.get(asText(field.name));
      return before && JSON.stringify(before.field) === JSON.stringify(field)
        ? before
        : carry(before, new FieldView(field));
    });
    this.#set.replaceChildren(...this.#fields.map((field) => field.node));
    this.#fields.find((field) => field.name === focused)?.control.focus();
  }

  /** What was answered, as labels and values; fields that were left empty are not told. */
  #summarise(answer) {
    const values = answer && typeof answer === "object" ? answer : {};
    const rows = this.#fields
      .map((field) => [field.label, field.said(values[field.name])])
      .filter(([, said]) => said !== "");
    this.#summary.replaceChildren(
      ...rows.flatMap(([label, said]) => [
        el("dt", { dir: "auto" }, label),
        el("dd", { dir: "auto" }, said),
      ]),
    );
  }

  #send(event) {
    event.preventDefault();
    const wrong = this.#fields.filter((field) => !field.check());
    if (wrong.length) return wrong[0].control.focus();
    const answered = this.#fields
      .map((field) => [field.name, field.value()])
      .filter(([, value]) => value !== undefined);
    const { submit_action: action } = this.component.props;
    const data = { ...(action && { action }), fields: Object.fromEntries(answered) };
    const files = this.#fields.flatMap(({ name, files: chosen }) =>
      chosen.map((file) => ({ part: `fields.${name}`, file })),
    );
    return this.#frame.answers.send(this.component, "form_submit", data, files);
  }

  /** Shows a refusal of the agent side at the field that it names, once. */
  #showRefusal() {
    const refusal = this.#frame.answers.refusal(this.component.id) ?? null;
    if (refusal === this.#refusal) return;
    this.#refusal = refusal;
    if (!refusal) return this.#fields.forEach((field) => field.complain(""));
    const field = this.#fields.find(({ name }) => refusal.detail === `fields.${name}`);
    field?.complain(refusal.error.replace(`${refusal.detail}: `, ""));
    (field ?? this.#fields[0])?.control.focus();
  }
}

function carry(before, field) {
  if (before && before.field.field_type === field.field.field_type) field.fill(before.value());
  return field;
}
