/** What the timeline is narrowed to; the fields are the truth, chips write into them. */

import { arrange, at, el } from "./dom.js";
import { familiesOf, Filter, typesIn } from "./fact_window.js";
import { brief, count } from "./words.js";

const TYPING_MS = 250;
/** Families that are offered as chips. */
const MOST_CHIPS = 14;

export class Filters {
  joining = true;
  #chips = new Map();
  #turns = "";
  #timer = null;

  /** @param changed(filter) is called when something else is wanted. */
  constructor(changed, drawAgain) {
    this.changed = changed;
    this.text = at("search");
    this.types = at("types");
    this.turn = at("turn");
    this.problems = at("problems");
    this.clearing = at("clear");
    this.chips = at("families");
    for (const field of [this.text, this.types])
      field.addEventListener("input", () => this.#soon());
    for (const field of [this.turn, this.problems])
      field.addEventListener("change", () => this.#tell());
    at("join").addEventListener("change", ({ target }) => {
      this.joining = target.checked;
      drawAgain();
    });
    this.clearing.addEventListener("click", () => {
      this.clear();
      this.#tell();
      this.text.focus();
    });
    at("filters").addEventListener("submit", (event) => event.preventDefault());
  }

  /** What is wanted now. */
  get filter() {
    return new Filter({
      types: typesIn(this.types.value),
      turn: this.turn.value || null,
      text: this.text.value.trim(),
      problems: this.problems.checked,
    });
  }

  /** Empties the fields; tells nobody. */
  clear() {
    this.text.value = this.types.value = this.turn.value = "";
    this.problems.checked = false;
    this.#marks();
  }

  /** Narrows to what belongs to an id. */
  narrow(name, id) {
    this.clear();
    if (name === "turnId") this.#setTurn(id);
    else this.text.value = id;
    this.#tell();
  }

  #setTurn(id) {
    if (![...this.turn.options].some((option) => option.value === id))
      this.turn.append(el("option", { value: id }, id));
    this.turn.value = id;
  }

  /** Offers the families and turns that the session has. */
  draw(snapshot) {
    this.#drawTurns(snapshot);
    this.#drawChips(snapshot);
    this.#marks();
  }

  #drawTurns(snapshot) {
    const turns = (snapshot?.threads ?? []).flatMap((thread) => thread.turns ?? []).reverse();
    const key = JSON.stringify(turns.map((turn) => turn.turnId));
    if (key === this.#turns) return;
    this.#turns = key;
    const now = this.turn.value;
    this.turn.replaceChildren(
      el("option", { value: "" }, "All turns"),
      ...turns.map((turn) =>
        el(
          "option",
          { value: turn.turnId },
          `${turn.turnId} ${brief(turn.input ?? turn.inputType, 40)}`,
        ),
      ),
    );
    if (now) this.#setTurn(now);
  }

  #drawChips(snapshot) {
    const families = familiesOf(snapshot?.telemetrySummary?.byFamily).slice(0, MOST_CHIPS);
    const nodes = families.map(([name, number]) => {
      let chip = this.#chips.get(name);
      if (!chip) {
        chip = el(
          "button",
          { type: "button", class: "chip", "data-family": name, onclick: () => this.#toggle(name) },
          name,
          el("span", { class: "count" }),
        );
        this.#chips.set(name, chip);
      }
      chip.lastChild.textContent = count(number);
      return chip;
    });
    arrange(this.chips, nodes);
  }

  #toggle(name) {
    const types = typesIn(this.types.value);
    const rest = types.filter((one) => one !== name);
    this.types.value = (rest.length === types.length ? [...types, name] : rest).join(" ");
    this.#tell();
  }

  #soon() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#tell(), TYPING_MS);
  }

  #tell() {
    clearTimeout(this.#timer);
    this.#marks();
    this.changed(this.filter);
  }

  #marks() {
    const { filter } = this;
    for (const [name, chip] of this.#chips)
      chip.setAttribute("aria-pressed", String(filter.types.includes(name)));
    this.clearing.hidden = filter.isEmpty;
  }
}
