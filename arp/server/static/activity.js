/** What an agent did beside its answer: its thoughts and the tools it ran. */

import { arrange, asText, el, icon, setText } from "./dom.js";

/** The agent's thoughts, folded. */
export class ThinkingView {
  #text = el("p", { class: "plain", dir: "auto" });
  #label = el("summary", {}, "Thinking");
  node = el("details", { class: "thinking" }, this.#label, this.#text);

  update(text, active) {
    this.node.hidden = !text;
    this.node.classList.toggle("active", active);
    setText(this.#label, active ? "Thinking…" : "Thoughts");
    setText(this.#text, text);
  }
}

const TOOL_STATES = new Map([
  [null, ["running", "tool"]],
  [true, ["done", "check"]],
  [false, ["failed", "error"]],
]);

/** The tools of a turn, one row each; the rows keep whether the user opened them. */
export class ToolList {
  node = el("ul", { "class": "tools", "aria-label": "Tools used" });
  #rows = [];

  update(tools) {
    this.node.hidden = tools.length === 0;
    this.#rows = tools.map((run, index) =>
      this.#rows[index]?.run === run ? this.#rows[index] : this.#row(run, index),
    );
    arrange(
      this.node,
      this.#rows.map(({ node }) => node),
    );
  }

  #row(run, index) {
    const [state, sign] = TOOL_STATES.get(run.ok) ?? TOOL_STATES.get(null);
    const args = argumentsText(run.args);
    const head = [
      icon(sign),
      el("span", { class: "name", dir: "auto" }, asText(run.tool)),
      el("span", { "class": "brief", "aria-hidden": "true" }, brief(args)),
      el("span", { class: "state" }, state),
    ];
    const more = [args, asText(run.error)].filter(Boolean);
    const open = Boolean(this.#rows[index]?.node.querySelector("details")?.open);
    const face = more.length
      ? el(
          "details",
          { open },
          el("summary", {}, head),
          more.map((text) => el("pre", { tabindex: "0" }, text)),
        )
      : el("div", { class: "summary" }, head);
    return { run, node: el("li", { class: `tool ${state}` }, face) };
  }
}

/** The values of the arguments on one line, for a glance. */
function brief(args) {
  return args
    .slice(0, 400)
    .replace(/^ *"\w+": /gm, "")
    .replace(/[{}\n"]+| {2,}/g, " ")
    .trim();
}

/** The arguments, laid out; "" when there are none. */
function argumentsText(args) {
  try {
    const value = JSON.parse(args);
    return value && Object.keys(value).length ? JSON.stringify(value, null, 2) : "";
  } catch {
    return asText(args);
  }
}
