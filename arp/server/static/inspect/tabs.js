/** The row of tabs: arrow keys go along, one is chosen. */

import { arrange, at, el, setText } from "./dom.js";
import { PANELS } from "./panels.js";
import { count } from "./words.js";

const NAMES = ["timeline", ...Object.keys(PANELS)];

export class Tabs {
  chosen = "timeline";
  #nodes = new Map();

  constructor(changed) {
    this.changed = changed;
    this.row = at("tabs");
    for (const name of NAMES) this.#nodes.set(name, this.#build(name));
    arrange(this.row, [...this.#nodes.values()]);
    this.row.addEventListener("keydown", (event) => this.#key(event));
  }

  #build(name) {
    return el(
      "button",
      {
        type: "button",
        role: "tab",
        id: `tab-${name}`,
        "aria-controls": name === "timeline" ? "timeline" : "panel",
        onclick: () => this.choose(name),
      },
      PANELS[name]?.label ?? "Timeline",
      el("span", { class: "count", hidden: true }),
    );
  }

  choose(name) {
    this.chosen = NAMES.includes(name) ? name : "timeline";
    this.changed();
  }

  draw(snapshot, head) {
    for (const [name, node] of this.#nodes) {
      const isChosen = name === this.chosen;
      node.setAttribute("aria-selected", String(isChosen));
      node.tabIndex = isChosen ? 0 : -1;
      const number = name === "timeline" ? head : snapshot ? PANELS[name].count(snapshot) : 0;
      node.lastChild.hidden = !number;
      setText(node.lastChild, count(number));
      node.lastChild.classList.toggle("bad", Boolean(snapshot && PANELS[name]?.isBad?.(snapshot)));
    }
  }

  #key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const index = NAMES.indexOf(this.chosen);
    const to = { Home: 0, End: NAMES.length - 1 }[event.key] ?? (step ? index + step : null);
    if (to === null) return;
    event.preventDefault();
    this.choose(NAMES[(to + NAMES.length) % NAMES.length]);
    this.#nodes.get(this.chosen).focus();
  }
}
