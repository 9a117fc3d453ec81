/**
 * The conversation as elements: one block per turn, redrawn only when the turn's revision has
 * risen; below them what other surfaces show, and what the user said that is still on its way.
 */

import { ThinkingView, ToolList } from "./activity.js";
import { bubble } from "./bubble.js";
import { ComponentList } from "./components.js";
import { arrange, asList, asText, el, icon, uniqueId, unseen } from "./dom.js";

/** Draws a Screen and an Outbox into `node`. */
export class Transcript {
  #turns = new Map();
  #surfaces = new Map();
  #drawn = new WeakMap();

  /** `page` gives find(id), answers, retry(id), remove(id), say(text). */
  constructor(node, page) {
    this.node = node;
    this.page = page;
  }

  /** Makes the elements equal to the state. */
  draw(screen, outbox) {
    const turns = kept(this.#turns, screen.turns, (id) => new TurnView(this.page, id));
    const surfaces = kept(
      this.#surfaces,
      screen.surfaces,
      (name) => new SurfaceView(this.page, name),
    );
    for (const [id, view] of turns) view.update(screen.turns.get(id));
    for (const [name, view] of surfaces) view.update(screen.surfaces.get(name));
    this.#turns = turns;
    this.#surfaces = surfaces;
    const nodes = [...turns.values(), ...surfaces.values()].map((view) => view.node);
    arrange(this.node, [...nodes, ...this.#outgoing(outbox)]);
  }

  /** The text of a turn's answer as it shows, without its questions. */
  textOf(turnId) {
    const parts = [...(this.#turns.get(turnId)?.output.children ?? [])];
    return parts
      .filter((part) => !part.querySelector(".question"))
      .map((part) => part.innerText)
      .join("\n");
  }

  #outgoing(outbox) {
    const items = outbox.items.filter(({ message }) => !message.source_component);
    return items.map((item) => this.#waiting(item));
  }

  /**
   * The bubble of an item; made anew only when its phase changes, so that its buttons keep focus.
   */
  #waiting(item) {
    const drawn = this.#drawn.get(item);
    if (drawn?.phase === item.phase) return drawn.node;
    const files = item.files.map(({ file }) => file);
    const said = el(
      "div",
      { class: "said" },
      bubble(item.message, null, files),
      this.#standing(item),
    );
    const node = el("div", { class: "turn" }, said);
    this.#drawn.set(item, { phase: item.phase, node });
    return node;
  }

  #standing({ phase, error, message, files }) {
    if (phase === "refused") {
      const button = (label, action) =>
        el("button", { type: "button", class: "link", onclick: () => action(message.id) }, label);
      return el(
        "p",
        { class: "caption failed" },
        `Not sent: ${error?.error ?? "refused"} `,
        button("Try again", this.page.retry),
        button("Remove", this.page.remove),
      );
    }
    const waits = files.length
      ? "Uploading…"
      : phase === "waiting"
        ? "Waiting for the connection"
        : "";
    return waits && phase !== "accepted" ? el("p", { class: "caption" }, waits) : null;
  }
}

function kept(views, state, make) {
  return new Map([...state.keys()].map((key) => [key, views.get(key) ?? make(key)]));
}

/** What an agent shows on a surface beside the conversation. */
class SurfaceView {
  #list;
  #body = el("div", { class: "output" });

  constructor({ answers }, name) {
    this.#list = new ComponentList(answers);
    this.node = el(
      "section",
      { "class": "surface", "aria-label": name },
      el("h2", {}, name),
      this.#body,
    );
  }

  update(components) {
    arrange(this.#body, this.#list.nodes(components));
    this.node.hidden = components.length === 0;
  }
}

class TurnView {
  output = el("div", { class: "output" });
  #shown = { turn: null, revision: -1 };
  #said = el("div", { class: "said" });
  #thinking = new ThinkingView();
  #tools = new ToolList();
  #ending = el("div", { class: "ending" });
  #heading = uniqueId("answer");
  #bubbles = new Map();

  constructor(page) {
    this.page = page;
    this.list = new ComponentList(page.answers);
    this.answer = el(
      "article",
      { "class": "answer", "aria-labelledby": this.#heading },
      el("h2", { id: this.#heading, class: "unseen" }, "Answer"),
      this.#thinking.node,
      this.#tools.node,
      this.output,
      this.#ending,
    );
    this.node = el("div", { class: "turn" }, this.#said, this.answer);
  }

  update(turn) {
    if (this.#shown.turn === turn && this.#shown.revision === turn.revision) return;
    this.#shown = { turn, revision: turn.revision };
    this.#drawSaid(turn);
    this.#thinking.update(turn.thinking, turn.open && !turn.output.length);
    this.#tools.update(turn.tools);
    this.#drawOutput(turn);
    arrange(this.#ending, this.#ends(turn));
    this.answer.hidden = turn.status === "queued" && !turn.output.length;
  }

  /**
   * What opened the turn, and what was typed since; an answer given at its component shows there.
   */
  #visible(turn) {
    return turn.inputs.filter((input, index) => index === 0 || !input.source_component);
  }

  #bubble(input) {
    if (!this.#bubbles.has(input)) {
      this.#bubbles.set(
        input,
        bubble(input, this.page.find(input.source_component), asList(input.data?.files)),
      );
    }
    return this.#bubbles.get(input);
  }

  #drawSaid(turn) {
    const opening = this.#visible(turn).filter((input) => placeOf(turn, input) === 0);
    const queued =
      turn.status === "queued" &&
      el(
        "p",
        { class: "caption" },
        turn.position > 1 ? `Queued, ${turn.position} in line` : "Queued, next in line",
      );
    arrange(this.#said, [...opening.map((input) => this.#bubble(input)), queued].filter(Boolean));
  }

  #drawOutput(turn) {
    const nodes = this.list.nodes(turn.output, turn.open);
    const later = this.#visible(turn)
      .map((input) => ({ input, place: placeOf(turn, input) }))
      .filter(({ place }) => place > 0)
      .sort((a, b) => a.place - b.place);
    for (const { input, place } of later.reverse()) nodes.splice(place, 0, this.#bubble(input));
    arrange(this.output, nodes.filter(Boolean));
  }

  #ends(turn) {
    const busy = turn.open && (turn.status === "running" || turn.status === null);
    return [
      busy && el("p", { class: "dots" }, el("i"), el("i"), el("i"), unseen("Working")),
      ...turn.errors.map((error) => this.#error(turn, error)),
      turn.status === "failed" &&
        !turn.errors.length &&
        this.#error(turn, { error: "The agent failed." }),
      turn.status === "cancelled" && el("p", { class: "caption" }, "Stopped"),
    ].filter(Boolean);
  }

  #error(turn, payload) {
    const text = turn.inputs[0]?.input_type === "text" ? turn.inputs[0].data.text : null;
    const again =
      text &&
      el(
        "button",
        { type: "button", class: "soft", onclick: () => this.page.say(text) },
        "Try again",
      );
    return el(
      "section",
      { class: "card status error" },
      el("h3", {}, icon("error"), "Something went wrong"),
      el("p", { class: "plain told" }, asText(payload.error)),
      again,
    );
  }
}

/** How many components of the output an input stands behind; 0 when none of them is there. */
function placeOf(turn, input) {
  return turn.output.findIndex((component) => component.id === input.after) + 1;
}
