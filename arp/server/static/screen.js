/**
 * What the page shows, as plain state without a document: messages go in, turns come out.
 *
 * Theory of operation. `delta`, tools, `turn` and `error` take effect on arrival. `render` and
 * `patch` wait in #pending for their `commit` and then apply whole or not at all. A snapshot is
 * built on a second screen, which takes this one's place at the commit that carries a `seq`; until
 * then the old one shows. `seq` counts as applied on arrival, but for render and patch at their
 * commit. What shows twice if it is told twice, and has no `seq`, is part of a catch-up: until the
 * next `seq` this screen stands at no place. A turn's `revision` rises with every change of it, so
 * that a view redraws only what is new. Source: protocol.md 2 to 4.
 */

import { PatchRefused, applyOp, find, replaceById } from "./tree.js";

const TEXT_PROPS = { "text": "content", "markdown": "content", "code-block": "code" };
const TOLD_ONCE = new Set(["delta", "tool_start", "commit", "input"]);
const OVER = new Set(["completed", "failed", "cancelled"]);

/** One turn of the conversation. */
class Turn {
  inputs = [];
  output = [];
  tools = [];
  errors = [];
  thinking = "";
  status = null;
  position = null;
  final = false;
  revision = 0;
  parts = 0;

  constructor(id) {
    this.id = id;
  }

  /** True while the agent may still add to it. */
  get open() {
    return !this.final && !OVER.has(this.status);
  }
}

/**
 * Everything that shows. `receive` takes one message and gives an effect for the caller, or null.
 */
export class Screen {
  turns = new Map();
  surfaces = new Map();
  sessionId = null;
  epoch = null;
  seq = 0;
  #pending = [];
  #next = null;
  #between = false;

  /** The last place applied, for the next hello; null when there is none. */
  get place() {
    return this.epoch === null || this.#between ? null : { epoch: this.epoch, seq: this.seq };
  }

  /** True while a snapshot is under way. */
  get loading() {
    return this.#next !== null;
  }

  /** Takes one message of the agent side; a type that is not known is passed over. */
  receive(message) {
    if (message.type === "session") return this.#session(message);
    if (message.session_id != null && message.session_id !== this.sessionId) return null;
    const effect = (this.#next ?? this).#show(message);
    if (message.type === "commit" && message.seq != null && this.#next) return this.#swap();
    return effect;
  }

  /** Forgets what came without its commit, and a half-built snapshot: the connection is gone. */
  dropPending() {
    this.#pending = [];
    this.#next = null;
  }

  /** Forgets the place, so that the next connection brings a snapshot. */
  forgetPlace() {
    this.epoch = null;
    this.dropPending();
  }

  /** The component with this id, on any surface; undefined when there is none. */
  find(id) {
    for (const turn of [...this.turns.values()].reverse()) {
      const found = find(turn.output, id);
      if (found) return found;
    }
    return [...this.surfaces.values()].map((list) => find(list, id)).find(Boolean);
  }

  /** The name of the surface that shows this component. */
  surfaceOf(id) {
    return [...this.surfaces].find(([, list]) => find(list, id))?.[0] ?? "main";
  }

  /** Makes views redraw the turn that shows this component. */
  touch(id) {
    for (const turn of this.turns.values()) if (find(turn.output, id)) turn.revision += 1;
  }

  #session({ session_id, epoch, seq, resume }) {
    this.dropPending();
    this.sessionId = session_id;
    if (resume === "replay") return { kind: "ready" };
    this.#next = new Screen();
    this.#next.sessionId = session_id;
    this.#next.epoch = epoch;
    if (resume !== "new" && seq !== 0) return { kind: "loading" };
    this.#next.seq = seq ?? 0;
    return this.#swap();
  }

  #swap() {
    const { turns, surfaces, epoch, seq } = this.#next;
    this.#next = null;
    this.#between = false;
    Object.assign(this, { turns, surfaces, epoch, seq });
    return { kind: "ready" };
  }

  #show(message) {
    const { type, seq } = message;
    const effect = Object.hasOwn(this.#handlers, type) ? this.#handlers[type](message) : null;
    if (type === "render" || type === "patch") return null;
    if (seq > this.seq) this.seq = seq;
    if (seq != null) this.#between = false;
    else if (TOLD_ONCE.has(type) || (type === "error" && message.turn_id != null)) {
      this.#between = true;
    }
    return effect ?? null;
  }

  #handlers = {
    delta: (message) => this.#delta(message),
    tool_start: (message) => this.#toolStart(message),
    tool_end: (message) => this.#toolEnd(message),
    render: (message) => void this.#pending.push(message),
    patch: (message) => void this.#pending.push(message),
    commit: (message) => this.#commit(message),
    error: (message) => this.#error(message),
    ack: ({ id, turn_id: turnId }) => ({ kind: "accepted", id, turnId }),
    input: (message) => this.#input(message),
    turn: (message) => this.#status(message),
  };

  /** The turn of a message; one that names none belongs to the turn that is still open. */
  #turn(id) {
    const last = [...this.turns.values()].at(-1);
    const key = id ?? (last?.open ? last.id : `?${this.turns.size}`);
    if (!this.turns.has(key)) this.turns.set(key, new Turn(key));
    const turn = this.turns.get(key);
    turn.revision += 1;
    return turn;
  }

  #delta({ turn_id: turnId, payload }) {
    if (typeof payload?.delta !== "string") return;
    const turn = this.#turn(turnId);
    if (payload.kind === "thinking") {
      turn.thinking += payload.delta;
    } else if (payload.target != null) {
      this.#extend(payload.target, payload.delta);
    } else if (turn.output.at(-1)?.id.includes("/")) {
      this.#extend(turn.output.at(-1).id, payload.delta);
    } else {
      turn.output = [...turn.output, this.#newPart(turn, payload.delta)];
    }
  }

  /** A text part has an id with a slash, which no component of an agent has. */
  #newPart(turn, content) {
    do turn.parts += 1;
    while (find(turn.output, `${turn.id}/${turn.parts}`));
    return { id: `${turn.id}/${turn.parts}`, type: "text", props: { content, format: "markdown" } };
  }

  #extend(id, text) {
    this.#edit("main", (list) => {
      const component = find(list, id);
      if (!component) return undefined;
      const prop = TEXT_PROPS[component.type] ?? "content";
      const props = { ...component.props, [prop]: (component.props[prop] ?? "") + text };
      return replaceById(list, id, { ...component, props });
    });
  }

  #toolStart({ turn_id: turnId, payload }) {
    const { tool, args, call_id: callId } = payload;
    const turn = this.#turn(turnId);
    turn.tools = [...turn.tools, { tool, args, callId, ok: null, error: null }];
  }

  #toolEnd({ turn_id: turnId, payload }) {
    const { tool, ok, call_id: callId, error = null } = payload;
    const turn = this.#turn(turnId);
    const at = turn.tools.findIndex(
      (run) => run.ok === null && (callId ? run.callId === callId : run.tool === tool),
    );
    if (at >= 0) turn.tools = turn.tools.with(at, { ...turn.tools[at], ok, error });
  }

  #status({ turn_id: turnId, status, position = null }) {
    const turn = this.#turn(turnId);
    Object.assign(turn, { status, position });
    return { kind: "turn", turn };
  }

  #input(message) {
    const turn = this.#turn(message.turn_id);
    const known = message.id != null && turn.inputs.some((input) => input.id === message.id);
    const after = message.behind ? message.behind.component : turn.output.at(-1)?.id;
    if (!known) turn.inputs = [...turn.inputs, { ...message, after: after ?? null }];
    return { kind: "told", id: message.id };
  }

  #error({ turn_id: turnId, payload }) {
    if (payload.id != null) return { kind: "refused", id: payload.id, payload };
    if (turnId == null) return { kind: "notice", payload };
    const turn = this.#turn(turnId);
    turn.errors = [...turn.errors, payload];
    return { kind: "failed", payload };
  }

  #commit({ turn_id: turnId, final }) {
    const before = this.#copy();
    const pending = this.#pending;
    this.#pending = [];
    try {
      for (const change of pending) this.#apply(change);
    } catch (error) {
      this.#restore(before);
      if (error instanceof PatchRefused) return { kind: "resync", reason: error.message };
      throw error;
    }
    if (final) this.#turn(turnId).final = true;
  }

  #copy() {
    const outputs = new Map([...this.turns.values()].map((turn) => [turn, turn.output]));
    return { turns: new Map(this.turns), surfaces: new Map(this.surfaces), outputs };
  }

  #restore({ turns, surfaces, outputs }) {
    Object.assign(this, { turns, surfaces });
    for (const [turn, output] of outputs) turn.output = output;
  }

  #apply({ type, surface = "main", turn_id: turnId, components, replace, ops }) {
    if (type === "patch") {
      for (const op of ops) this.#patch(surface, turnId, op);
      return;
    }
    if (replace) this.#edit(surface, () => [], true);
    for (const component of components) {
      if (!this.#edit(surface, (list) => replaceById(list, component.id, component))) {
        this.#editOutput(surface, turnId, (list) => [...list, component]);
      }
    }
  }

  #patch(surface, turnId, op) {
    if (op.op === "insert" && op.parent == null && op.after == null) {
      this.#editOutput(surface, turnId, (list) => applyOp(list, op));
    } else if (!this.#edit(surface, (list) => applyOp(list, op))) {
      throw new PatchRefused(`${op.op}: no component ${op.target ?? op.parent ?? op.after}`);
    }
  }

  /**
   * Edits the first list of a surface (or all) that `edit` gives a new list for; true if one was.
   */
  #edit(surface, edit, all = false) {
    let edited = false;
    if (surface !== "main") {
      const list = edit(this.surfaces.get(surface) ?? []);
      if (list) this.surfaces.set(surface, list);
      return Boolean(list);
    }
    for (const turn of [...this.turns.values()].reverse()) {
      const list = edit(turn.output);
      if (list) Object.assign(turn, { output: list, revision: turn.revision + 1 });
      edited ||= Boolean(list);
      if (edited && !all) break;
    }
    return edited;
  }

  /** Edits where a turn's new components go: its output, or the whole of another surface. */
  #editOutput(surface, turnId, edit) {
    if (surface !== "main") return void this.#edit(surface, edit);
    const turn = this.#turn(turnId);
    turn.output = edit(turn.output);
  }
}
