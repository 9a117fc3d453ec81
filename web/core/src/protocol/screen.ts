/**
 * What a renderer shows: the conversation and the surfaces, kept from the messages alone.
 *
 * Theory of operation. `delta`, tools, `turn`, `input` and `error` take effect on arrival. `render`
 * and `patch` wait for their `commit` and then apply whole or not at all. What is asked for
 * (`turn`, `surface`) are values that never change and are the same object until something in them
 * does. `dirty` names what has changed since somebody last emptied it. The rules are those of
 * `arp/protocol/screen.py`; shared cases hold both to them. Source: protocol.md 2.
 */

import type {
  AgentMessage,
  OutputAnchor,
  Command,
  Commit,
  Component,
  Delta,
  ErrorMessage,
  ErrorPayload,
  InputEcho,
  JsonObject,
  Patch,
  Permission,
  Render,
  SurfaceInfo,
  SurfaceMessage,
  ToolProgressPayload,
  TurnMessage,
} from "./generated/wire.js";
import { lengthOf } from "./path.js";
import { sameList } from "./same.js";
import { Change, Tree } from "./tree.js";

export type TurnStatus = TurnMessage["status"];

/** One use of a tool. */
export interface ToolRun {
  readonly callId: string;
  readonly tool: string;
  /** JSON, as a string. */
  readonly args: string;
  /** `null` while it runs. */
  readonly ok: boolean | null;
  readonly error: string | null;
  /** Its latest progress; absent when it is done. */
  readonly progress?: ToolProgressPayload | null | undefined;
  /** The beginning of what it returned, a text or JSON, cut off with `…`; absent if nothing is known of it. */
  readonly result?: string | null | undefined;
  /** Where the whole result is, below the server's root; absent if there is no more. */
  readonly resultRef?: string | null | undefined;
  /** How long it ran, where the agent side says. */
  readonly durationMs?: number | null | undefined;
}

/** The place of an input, a tool or an error, or of where thinking began. */
export interface Mark {
  readonly kind: "input" | "thinking" | "tool" | "error";
  /** Which of its kind in this turn, from 0. */
  readonly number: number;
  /** The root component or text part that it follows; `null` = before all. */
  readonly component: string | null;
  /** Unicode characters of that text part before it; `null` = all of them. */
  readonly characters: number | null;
}

/** One turn of the conversation, as it is now. */
export interface TurnState {
  readonly id: string;
  readonly status: TurnStatus | null;
  /** 1 = next, while queued. */
  readonly position: number | null;
  /** What the user said or did: what began the turn, then answers to its questions. */
  readonly inputs: readonly InputEcho[];
  /** Text parts and components in order; see `isTextPart`. */
  readonly output: readonly Component[];
  readonly tools: readonly ToolRun[];
  readonly thinking: string;
  readonly errors: readonly ErrorPayload[];
  /** Where inputs, thinking, tools and errors are among the output; see `storyOf`. */
  readonly marks: readonly Mark[];
  /** The components by which its tools asked for permission: no other component counts as one. */
  readonly permissions: readonly Permission[];
  readonly usage: JsonObject | null;
  /** While queued: the queue is paused until somebody resumes it. */
  readonly paused?: boolean;
  /** Its output is complete. */
  readonly final: boolean;
  /** When it ended, RFC 3339; absent while it is not over, or of an agent side that does not say. */
  readonly at?: string | null | undefined;
}

/** What changed: `phases` is the status of a turn, or whether it is final; `turn:ID` is anything in a turn. */
export type Key =
  | "turns"
  | "phases"
  | "surfaces"
  | "popups"
  | "state"
  | "errors"
  | `turn:${string}`
  | `surface:${string}`
  | `info:${string}`;

const MOST_ERRORS = 100;
/** What may wait for its commit, in characters: a peer that never commits must not fill the memory. */
const MOST_PENDING = 64 << 20;
const NONE: readonly never[] = [];

type Rest = Omit<TurnState, "output">;

/** The place of a message's content. */
interface Marking {
  readonly turn_id?: string | null;
  readonly behind?: OutputAnchor | null;
}

/** The state that a renderer draws. */
export class Screen {
  /** What has changed; anyone who reads it empties it. */
  readonly dirty = new Set<Key>();
  /** The session's own slash commands, which stand beside those of the app. */
  commands: readonly Command[] = NONE;
  #turns = new Map<string, Rest>();
  #states = new Map<string, TurnState>();
  #ids: readonly string[] = NONE;
  #surfaces = new Map<string, Tree>();
  #infos = new Map<string, SurfaceInfo>();
  /** What agents share with renderers. */
  sharedState: JsonObject = {};
  #errors: readonly ErrorPayload[] = NONE;
  #popups: readonly string[] = NONE;
  #names: readonly string[] = NONE;
  #pending: (Render | Patch)[] = [];
  #pendingSize = 0;
  #spoiled = false;
  readonly #asking = new Set<string>();
  /** The turns that have marks after a root component. */
  readonly #marked = new Map<string, Set<string>>();

  constructor() {
    this.#surface("main");
  }

  /** The ids of the turns, oldest first. */
  get turnIds(): readonly string[] {
    if (this.#ids.length !== this.#turns.size) this.#ids = [...this.#turns.keys()];
    return this.#ids;
  }

  /** Errors that belong to no turn, the newest 100. */
  get errors(): readonly ErrorPayload[] {
    return this.#errors;
  }

  /** The names of the surfaces besides `main` on which something shows, without popups and overlays. */
  get surfaceNames(): readonly string[] {
    return (this.#names = sameList(this.#names, this.#shown(false).sort()));
  }

  /** The names of the popups and overlays on which something shows, oldest first. */
  get popupNames(): readonly string[] {
    return (this.#popups = sameList(this.#popups, this.#shown(true)));
  }

  /** What a surface is; `undefined` if the agent side only rendered to it: then it is a toplevel without a title. */
  surfaceInfo(name: string): SurfaceInfo | undefined {
    return this.#infos.get(name);
  }

  /** What each surface is of which the agent side said so. */
  get described(): { readonly [name: string]: SurfaceInfo } {
    return Object.fromEntries(this.#infos);
  }

  #shown(isPopup: boolean): string[] {
    const hasRole = (name: string) => ((this.#infos.get(name)?.role ?? "toplevel") !== "toplevel") === isPopup;
    return [...this.#surfaces.keys()].filter(
      (name) => name !== "main" && hasRole(name) && this.surface(name).length > 0,
    );
  }

  /** A turn; `undefined` if there is none of that id. */
  turn(id: string): TurnState | undefined {
    const rest = this.#turns.get(id);
    let state = this.#states.get(id);
    if (rest && !state) {
      state = { ...rest, output: (this.#surfaces.get("main") as Tree).output(id) };
      this.#states.set(id, state);
    }
    return state;
  }

  /** The status of a turn, without making all of it. */
  status(id: string): TurnStatus | null | undefined {
    return this.#turns.get(id)?.status;
  }

  /** Whether all of a turn's output has come. */
  isFinal(id: string): boolean {
    return this.#turns.get(id)?.final ?? false;
  }

  /** What shows on a surface besides `main`. */
  surface(name: string): readonly Component[] {
    return this.#surfaces.get(name)?.output("") ?? NONE;
  }

  /** The turns whose tools asked for permission, oldest first, whether that was answered or not. */
  get askingTurns(): readonly string[] {
    return [...this.#asking];
  }

  /** The component with this id, on any level, and its surface; on the named one, or the first that has it. */
  find(id: string, on?: string): { readonly surface: string; readonly component: Component } | undefined {
    for (const [surface, tree] of this.#surfaces) {
      if ((on ?? surface) === surface && tree.nodes.has(id)) return { surface, component: tree.whole(id) };
    }
    return undefined;
  }

  /**
   * Takes one message; what shows nothing is ignored. Returns why a commit could not be applied,
   * if so: then nothing of it is, and this screen is not what the agent side takes it to be.
   */
  apply(message: AgentMessage): string | null {
    switch (message.type) {
      case "delta":
        this.#delta(message);
        break;
      case "render":
      case "patch":
        if (!this.#spoiled) this.#pending.push(message);
        break;
      case "commit":
        return this.#commit(message);
      case "error":
        this.#error(message);
        break;
      case "commands":
        this.commands = message.commands;
        break;
      case "surface":
        this.#describe(message);
        break;
      case "state":
        this.sharedState = message.state;
        this.dirty.add("state");
        break;
      case "tool_start": {
        const { tool, args, call_id: callId = "" } = message.payload;
        const run: ToolRun = { callId, tool, args, ok: null, error: null };
        this.#edit(message.turn_id, ({ tools, marks }) => ({
          tools: [...tools, run],
          marks: [...marks, this.#mark("tool", tools, message)],
        }));
        break;
      }
      case "tool_progress": {
        const { payload } = message;
        this.#edit(message.turn_id, ({ tools }) => ({ tools: changed(tools, payload, { progress: payload }) }));
        break;
      }
      case "tool_end": {
        const { payload } = message;
        const { ok, error = null, result, result_ref: resultRef, duration_ms: durationMs } = payload;
        const end = { ok, error, progress: undefined, result, resultRef, durationMs };
        this.#edit(message.turn_id, ({ tools }) => ({ tools: changed(tools, payload, end) }));
        break;
      }
      case "input":
        this.#edit(message.turn_id, ({ inputs, marks }) =>
          message.edited && inputs.length > 0
            ? { inputs: inputs.with(0, message) }
            : { inputs: [...inputs, message], marks: [...marks, this.#mark("input", inputs, message)] },
        );
        break;
      case "turn": {
        const { status, position = null, permission, paused = false } = message;
        if (permission) this.#asking.add(message.turn_id ?? "");
        this.#edit(message.turn_id, ({ permissions }) => ({
          status,
          position,
          paused,
          permissions: permission
            ? [...permissions.filter(({ component }) => component !== permission.component), permission]
            : permissions,
        }));
        break;
      }
    }
    return null;
  }

  /** Keeps the values of turns that are the same there. */
  inherit(before: Screen): void {
    for (const id of this.turnIds) {
      const [was, is] = [before.turn(id), this.turn(id)];
      if (was && printOf(was) === printOf(is as TurnState)) this.#states.set(id, was);
    }
  }

  /** Forgets what has come without its commit: that will not come. */
  dropPending(): void {
    this.#pending = [];
    this.#spoiled = false;
  }

  /** Takes note that something is missing before the next commit: that shows nothing then. */
  spoilPending(): void {
    this.#pending = [];
    this.#spoiled = true;
  }

  /**
   * Counts what waits for its commit; of too much nothing is kept or shown.
   *
   * @param size Of the frame that was applied last.
   * @returns Whether it is too much.
   */
  weighPending(size: number): boolean {
    this.#pendingSize = this.#pending.length > 0 ? this.#pendingSize + size : 0;
    const isTooMuch = this.#pendingSize > MOST_PENDING;
    if (isTooMuch) this.spoilPending();
    return isTooMuch;
  }

  #edit(turnId: string | null | undefined, edit: (turn: Rest) => Partial<Rest>): void {
    const id = turnId ?? "";
    const turn = this.#turns.get(id) ?? newTurn(id);
    if (!this.#turns.has(id)) this.dirty.add("turns");
    const next = { ...turn, ...edit(turn) };
    if (next.status !== turn.status || next.final !== turn.final) this.dirty.add("phases");
    this.#turns.set(id, next);
    this.#touch(id);
  }

  #touch(turnId: string): void {
    this.#states.delete(turnId);
    this.dirty.add(`turn:${turnId}`);
  }

  #describe({ surface = "main", payload = {}, closed }: SurfaceMessage): void {
    if (surface === "main") return;
    this.dirty.add(`surface:${surface}`).add(`info:${surface}`).add("surfaces").add("popups");
    if (closed == null) {
      this.#surface(surface);
      this.#infos.set(surface, payload);
      return;
    }
    this.#surfaces.delete(surface);
    this.#infos.delete(surface);
    this.#pending = this.#pending.filter((message) => message.surface !== surface);
  }

  #surface(name: string): Tree {
    let tree = this.#surfaces.get(name);
    if (tree === undefined) {
      tree =
        name === "main"
          ? new Tree(
              (output) => this.#touch(output),
              (root, heir) => this.#inherit(root, heir),
            )
          : new Tree(() => this.dirty.add(`surface:${name}`).add("surfaces").add("popups"));
      this.#surfaces.set(name, tree);
    }
    return tree;
  }

  /** The mark of the next of its kind: at the place that its message names, or after all. */
  #mark(kind: Mark["kind"], before: ArrayLike<unknown>, { turn_id, behind }: Marking): Mark {
    const turnId = turn_id ?? "";
    const last = (this.#surfaces.get("main") as Tree).outputs.get(turnId)?.at(-1);
    const place = behind ? { component: null, characters: null, ...behind } : this.#endOf(last);
    this.#watch(place.component, turnId);
    return { kind, number: before.length, ...place };
  }

  /** The place after a root component as it is now; text may still join a text part. */
  #endOf(id: string | null = null): Required<OutputAnchor> {
    const node = id !== null && (this.#surfaces.get("main") as Tree).nodes.get(id);
    const content = node && id?.includes("/") ? node.own.props.content : null;
    return { component: id, characters: typeof content === "string" ? lengthOf(content) : null };
  }

  #watch(root: string | null | undefined, turnId: string): void {
    if (root == null) return;
    const turns = this.#marked.get(root) ?? new Set();
    this.#marked.set(root, turns.add(turnId));
  }

  /** Moves the marks after a root component that is gone. */
  #inherit(root: string, heir: string | null): void {
    const place = this.#endOf(heir);
    for (const turnId of this.#marked.get(root) ?? []) {
      this.#watch(heir, turnId);
      this.#edit(turnId, ({ marks }) => ({
        marks: marks.map((mark) => (mark.component === root ? { ...mark, ...place } : mark)),
      }));
    }
    this.#marked.delete(root);
  }

  #delta(message: Delta): void {
    const { turn_id, surface = "main", payload } = message;
    const { delta, target, kind } = payload;
    if (kind === "thinking") {
      this.#edit(turn_id, ({ thinking, marks }) => ({
        thinking: thinking + delta,
        marks: thinking ? marks : [...marks, this.#mark("thinking", "", message)],
      }));
      return;
    }
    const turnId = turn_id ?? "";
    if (!this.#turns.has(turnId)) this.#edit(turnId, () => ({}));
    const tree = this.#surface(surface);
    const output = outputOf(turnId, surface);
    const ids = tree.outputs.get(output) ?? NONE;
    const last = ids.at(-1);
    if (target != null) tree.appendText(target, delta);
    else if (last !== undefined && partNumber(last, turnId)) tree.appendText(last, delta);
    else {
      const id = nextPart(tree, turnId, ids);
      const change = new Change(tree);
      change.upsert({ id, type: "text", props: { content: delta, format: "markdown" } }, output);
      change.keep();
    }
  }

  #error(message: ErrorMessage): void {
    const { payload, turn_id } = message;
    if (turn_id != null) {
      this.#edit(turn_id, ({ errors, marks }) => ({
        errors: [...errors, payload],
        marks: [...marks, this.#mark("error", errors, message)],
      }));
      return;
    }
    this.#errors = [...this.#errors.slice(1 - MOST_ERRORS), payload];
    this.dirty.add("errors");
  }

  #commit({ turn_id, final = false, usage, at }: Commit): string | null {
    const pending = this.#pending;
    this.dropPending();
    let refused: string | null = null;
    const changes = new Map<string, Change>();
    try {
      for (const message of pending) {
        const { surface = "main" } = message;
        let change = changes.get(surface);
        if (change === undefined) {
          change = new Change(this.#surfaces.get(surface) ?? new Tree());
          changes.set(surface, change);
        }
        applyTo(change, message, outputOf(message.turn_id ?? "", surface));
      }
    } catch (error) {
      refused = error instanceof Error ? error.message : "does not fit";
    }
    if (refused === null) for (const [name, change] of changes) change.keep(this.#surface(name));
    if (turn_id != null) {
      this.#edit(turn_id, (turn) => ({ final: turn.final || final, usage: usage ?? turn.usage, at: at ?? turn.at }));
    }
    return refused;
  }
}

function applyTo(change: Change, message: Render | Patch, output: string): void {
  if (message.type === "patch") {
    for (const op of message.ops) change.patch(op, output);
    return;
  }
  if (message.replace) change.clear();
  for (const component of message.components) change.upsert(component, output);
}

function newTurn(id: string): Rest {
  return {
    id,
    status: null,
    position: null,
    inputs: NONE,
    tools: NONE,
    thinking: "",
    errors: NONE,
    marks: NONE,
    permissions: NONE,
    usage: null,
    final: false,
  };
}

/** All of a turn except the times at which it arrived. */
function printOf({ inputs, ...turn }: TurnState): string {
  return JSON.stringify([turn, inputs.map(({ seq, behind, ...others }) => others)]);
}

/** The uses of tools with a change of the one that runs under this id or, without an id, this name. */
function changed(
  tools: readonly ToolRun[],
  { tool, call_id }: { readonly tool?: string; readonly call_id?: string },
  change: Partial<ToolRun>,
): readonly ToolRun[] {
  const at = tools.findIndex((run) => run.ok === null && (call_id ? run.callId === call_id : run.tool === tool));
  return at < 0 ? tools : tools.with(at, { ...(tools[at] as ToolRun), ...change });
}

/** Returns whether a root component of a turn is text, not a component. */
export function isTextPart(component: Component, turnId: string): boolean {
  const { id, type, props } = component;
  return type === "text" && partNumber(id, turnId) > 0 && typeof props.content === "string";
}

/** The number of a text part of this turn; 0 for any other component. */
function partNumber(id: string, turnId: string): number {
  const at = id.lastIndexOf("/");
  const number = id.slice(at + 1);
  const ours = id.slice(0, Math.max(at, 0)) === turnId && /^[0-9]{1,9}$/.test(number);
  return ours ? Number(number) : 0;
}

function nextPart(tree: Tree, turnId: string, ids: readonly string[]): string {
  const before = ids.findLast((id) => partNumber(id, turnId));
  let number = before === undefined ? 1 : partNumber(before, turnId) + 1;
  while (tree.nodes.has(`${turnId}/${number}`)) number += 1;
  return `${turnId}/${number}`;
}

function outputOf(turnId: string, surface: string): string {
  return surface === "main" ? turnId : "";
}
