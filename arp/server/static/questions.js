/**
 * Input components that are answered by a choice: `confirm` and `choices`. What is shown follows
 * the component's `state` and `answer`, which the agent side sets, and the answer that is on its
 * way.
 */

import { asList, asText, el, icon, setText, uniqueId } from "./dom.js";
import { optionValue } from "./readable.js";

const NOTES = {
  answered: "Answered",
  expired: "This question has expired.",
  cancelled: "This question is closed.",
};

/** What to say below a question, and whether it can be answered now. */
export function standing(component, answers) {
  const { state = "open" } = component.props;
  const refusal = answers.refusal(component.id);
  if (state !== "open") return { locked: true, state, note: NOTES[state] ?? "", error: "" };
  if (refusal) return { locked: false, state, note: "", error: refusal.error };
  const sending = answers.pending(component.id);
  const note = sending
    ? answers.online()
      ? "Sending…"
      : "Will be sent when the connection is back."
    : "";
  return { locked: Boolean(sending), state, note, error: "" };
}

/**
 * A frame with title, text and a line for notes; each kind of question puts its controls between.
 */
export class QuestionFrame {
  title = el("h3", { id: uniqueId("question"), dir: "auto" });
  text = el("p", { class: "plain", dir: "auto" });
  body = el("div");
  note = el("p", { class: "note" });
  error = el("p", { class: "error", role: "alert" });

  constructor(answers, tag = "section") {
    this.answers = answers;
    const props = {
      "class": "card question",
      "role": tag === "section" && "group",
      "aria-labelledby": this.title.id,
    };
    this.node = el(tag, props, this.title, this.text, this.body, this.error, this.note);
  }

  /** Shows title, text and standing; gives the standing. */
  update(component, text, untitled) {
    const now = standing(component, this.answers);
    setText(this.title, asText(component.props.title) || untitled);
    setText(this.text, asText(text));
    setText(this.note, now.note);
    setText(this.error, now.error);
    this.text.hidden = !this.text.textContent;
    this.note.hidden = !now.note;
    this.error.hidden = !now.error;
    if (now.locked && this.node.contains(document.activeElement)) this.answers.focusComposer();
    this.node.classList.toggle("closed", now.state !== "open");
    return now;
  }
}

/** Yes or no: `action confirm|deny`. */
export class ConfirmView {
  #frame;
  #confirm = el("button", { type: "button", onclick: () => this.#answer("confirm") });
  #deny = el("button", { type: "button", class: "soft", onclick: () => this.#answer("deny") });

  constructor(answers) {
    this.#frame = new QuestionFrame(answers);
    this.#frame.body.className = "actions";
    this.#frame.body.append(this.#confirm, this.#deny);
    this.node = this.#frame.node;
  }

  update(component) {
    const { props } = component;
    this.component = component;
    const { locked } = this.#frame.update(component, props.message, "Confirm");
    const taken =
      props.answer === undefined || props.answer === null ? null : confirmed(props.answer);
    this.#confirm.className = props.destructive ? "danger" : "";
    mark(this.#confirm, asText(props.confirm_label) || "Yes", taken === true, locked);
    mark(this.#deny, asText(props.deny_label) || "No", taken === false, locked);
    this.node.classList.toggle("destructive", Boolean(props.destructive));
  }

  #answer(action) {
    this.#frame.answers.send(this.component, "action", { action });
  }
}

function confirmed(answer) {
  const said = typeof answer === "object" ? (answer.action ?? answer.confirmed) : answer;
  return said === true || said === "confirm";
}

/** One of several, or some of them: `selection`. */
export class ChoicesView {
  #frame;
  #options = [];
  #drawn = null;

  constructor(answers) {
    this.#frame = new QuestionFrame(answers);
    this.node = this.#frame.node;
  }

  update(component) {
    const { props } = component;
    this.component = component;
    const { locked, state } = this.#frame.update(component, "", "Choose");
    if (this.#drawn !== props.options || this.#multi !== Boolean(props.multi_select))
      this.#build(props);
    const style = ["list", "cards"].includes(props.style) ? props.style : "buttons";
    this.#frame.body.className = `options ${style}`;
    const chosen = chosenValues(props.answer);
    for (const { control, option } of this.#options) this.#show(control, option, chosen, locked);
    if (this.send) Object.assign(this.send, { disabled: locked, hidden: state !== "open" });
  }

  #build(props) {
    this.#drawn = props.options;
    this.#multi = Boolean(props.multi_select);
    this.#options = asList(props.options).map((option) => ({ option, ...this.#control(option) }));
    this.send = this.#multi
      ? el("button", { type: "button", onclick: () => this.#answer() }, "Send choice")
      : null;
    this.#frame.body.replaceChildren(
      ...this.#options.map(({ node }) => node),
      ...[this.send].filter(Boolean),
    );
  }

  #multi = false;

  #control(option) {
    const face = optionFace(option);
    if (this.#multi) {
      const control = el("input", { type: "checkbox" });
      return { control, node: el("label", { class: "option" }, control, face) };
    }
    const choose = () => this.#send([optionValue(option)]);
    const control = el("button", { type: "button", class: "option soft", onclick: choose }, face);
    return { control, node: control };
  }

  #show(control, option, chosen, locked) {
    const taken = chosen !== null && chosen.includes(optionValue(option));
    control.disabled = locked || Boolean(option?.disabled);
    if (!this.#multi) return markTaken(control, taken);
    if (chosen !== null) control.checked = taken;
    return control.parentElement.classList.toggle("taken", taken);
  }

  #answer() {
    const selected = this.#options
      .filter(({ control }) => control.checked)
      .map(({ option }) => optionValue(option));
    this.#send(selected);
  }

  #send(selected) {
    this.#frame.answers.send(this.component, "selection", { selected, source: this.component.id });
  }
}

function optionFace(option) {
  const {
    label,
    description,
    icon: sign,
  } = typeof option === "object" && option ? option : { label: option };
  const emoji =
    /^\P{ASCII}{1,8}$/u.test(sign ?? "") && el("span", { "aria-hidden": "true" }, `${sign} `);
  return el(
    "span",
    { class: "face", dir: "auto" },
    el("strong", {}, emoji, asText(label)),
    description && el("span", { class: "hint" }, asText(description)),
  );
}

function chosenValues(answer) {
  if (answer === undefined || answer === null) return null;
  return [answer.selected ?? answer].flat();
}

function mark(button, label, taken, locked) {
  if (button.firstChild?.textContent !== label)
    button.replaceChildren(el("span", { dir: "auto" }, label));
  button.disabled = locked;
  markTaken(button, taken);
}

/** Marks what was chosen by a sign and a word, not by colour alone. */
function markTaken(node, taken) {
  node.classList.toggle("taken", taken);
  const sign = node.querySelector(":scope > .sign");
  if (taken && !sign)
    node.append(
      el("span", { class: "sign" }, icon("check"), el("span", { class: "unseen" }, "chosen")),
    );
  if (!taken) sign?.remove();
}
