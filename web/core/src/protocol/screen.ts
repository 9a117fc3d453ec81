/**
 * The state of a renderer: the conversation and the surfaces, computed from messages alone.
 *
 * Theory of operation. `delta`, tool messages, `turn`, `input` and `error` take effect on arrival. `render`
 * and `patch` wait for their `commit`. A commit applies all of them, or none if one does not fit. `turn()`
 * and `surface()` return immutable values: the same object until something in it changes. `dirty` collects the
 * keys of everything that changed; its reader empties it. The rules are those of `arp/protocol/connection/screen.py`,
 * and shared test cases check both. Source: protocol.md 2.
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

/** One tool call. */
export interface ToolRun {
  readonly callId: string;
  readonly tool: string;
  /** Arguments as a JSON string. */
  readonly args: string;
  /** Whether it succeeded; `null` while it runs. */
  readonly ok: boolean | null;
  readonly error: string | null;
  /** Last reported progress; absent after the end. */
  readonly progress?: ToolProgressPayload | null | undefined;
  /** Beginning of the result, text or JSON, cut off with `…`; absent if no result was sent. */
  readonly result?: string | null | undefined;
  /** Path of the full result below the server's root; absent if `result` is complete. */
  readonly resultRef?: string | null | undefined;
  /** Duration in milliseconds, if the agent side sends it. */
  readonly durationMs?: number | null | undefined;
}

/** Position in the output of an input, a tool call, an error, or the start of the thinking. */
export interface Mark {
  readonly kind: "input" | "thinking" | "tool" | "error";
  /** Index among the marks of its kind in this turn, from 0. */
  readonly number: number;
  /** Id of the root component or text part that it follows; `null` means before all output. */
  readonly component: string | null;
  /** Number of Unicode characters of that text part before it; `null` means all of them. */
  readonly characters: number | null;
}

/** Current state of one turn of the conversation. */
export interface TurnState {
  readonly id: string;
  readonly status: TurnStatus | null;
  /** Position in the queue, 1 for the next turn; `null` unless the turn is queued. */
  readonly position: number | null;
  /** Inputs of the user: first the input that began the turn, then answers to its questions. */
  readonly inputs: readonly InputEcho[];
  /** Text parts and components in order; see `isTextPart`. */
  readonly output: readonly Component[];
  readonly tools: readonly ToolRun[];
  readonly thinking: string;
  readonly errors: readonly ErrorPayload[];
  /** Positions of inputs, thinking, tools and errors in the output; see `storyOf`. */
  readonly marks: readonly Mark[];
  /** Permission requests of its tools. Only the components named here may be shown as permissions. */
  readonly permissions: readonly Permission[];
  readonly usage: JsonObject | null;
  /** Whether the turn is queued in a queue that is paused until it is resumed. */
  readonly paused?: boolean;
  /** Whether the output is complete. */
  readonly final: boolean;
  /** Time of its end, RFC 3339; absent before the end, and if the agent side does not send it. */
  readonly at?: string | null | undefined;
}

/** Name of something that changed: `phases` for a turn's status or `final`, `turn:ID` for anything in a turn. */
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
/** Largest size in characters of changes that wait for a commit. A peer that never commits must not fill the memory. */
const MOST_PENDING = 64 << 20;
const NONE: readonly never[] = [];

/** A turn without its output, which is in the tree of the surface `main`. */
type Rest = Omit<TurnState, "output">;

/** Fields of a message that give its position. */
interface Marking {
  readonly turn_id?: string | null;
  readonly behind?: OutputAnchor | null;
}

/** The state that a renderer draws. */
export class Screen {
  /** Keys of what has changed; the reader empties the set. */
  readonly dirty = new Set<Key>();
  /** Slash commands of the session, in addition to those of the app. */
  commands: readonly Command[] = NONE;
  #turns = new Map<string, Rest>();
  /** Values that `turn` has returned; an entry is deleted when the turn changes. */
  #states = new Map<string, TurnState>();
  #ids: readonly string[] = NONE;
  #surfaces = new Map<string, Tree>();
  #infos = new Map<string, SurfaceInfo>();
  /** State that agents share with renderers. */
  sharedState: JsonObject = {};
  #errors: readonly ErrorPayload[] = NONE;
  #popups: readonly string[] = NONE;
  #names: readonly string[] = NONE;
  #pending: (Render | Patch)[] = [];
  #pendingSize = 0;
  /** Whether a message before the next commit is missing. */
  #spoiled = false;
  readonly #asking = new Set<string>();
  /** Ids of the turns that have marks after a root component, by the id of the component. */
  readonly #marked = new Map<string, Set<string>>();

  constructor() {
    this.#surface("main");
  }

  /** Ids of the turns, oldest first. */
  get turnIds(): readonly string[] {
    if (this.#ids.length !== this.#turns.size) this.#ids = [...this.#turns.keys()];
    return this.#ids;
  }

  /** Errors that belong to no turn, the newest 100. */
  get errors(): readonly ErrorPayload[] {
    return this.#errors;
  }

  /** Names of the non-empty surfaces besides `main`, without popups and overlays, sorted. */
  get surfaceNames(): readonly string[] {
    return (this.#names = sameList(this.#names, this.#shown(false).sort()));
  }

  /** Names of the non-empty popups and overlays, oldest first. */
  get popupNames(): readonly string[] {
    return (this.#popups = sameList(this.#popups, this.#shown(true)));
  }

  /** Return the description of a surface, or `undefined` for a toplevel without a title that was only rendered to. */
  surfaceInfo(name: string): SurfaceInfo | undefined {
    return this.#infos.get(name);
  }

  /** Descriptions of the surfaces that the agent side has described, by name. */
  get described(): { readonly [name: string]: SurfaceInfo } {
    return Object.fromEntries(this.#infos);
  }

  #shown(isPopup: boolean): string[] {
    const hasRole = (name: string) => ((this.#infos.get(name)?.role ?? "toplevel") !== "toplevel") === isPopup;
    return [...this.#surfaces.keys()].filter(
      (name) => name !== "main" && hasRole(name) && this.surface(name).length > 0,
    );
  }

  /** Return a turn, or `undefined` if no turn has this id. */
  turn(id: string): TurnState | undefined {
    const rest = this.#turns.get(id);
    let state = this.#states.get(id);
    if (rest && !state) {
      state = { ...rest, output: (this.#surfaces.get("main") as Tree).output(id) };
      this.#states.set(id, state);
    }
    return state;
  }

  /** Return the status of a turn without building its state. */
  status(id: string): TurnStatus | null | undefined {
    return this.#turns.get(id)?.status;
  }

  /** Return whether the output of a turn is complete. */
  isFinal(id: string): boolean {
    return this.#turns.get(id)?.final ?? false;
  }

  /** Return the root components of a surface other than `main`. */
  surface(name: string): readonly Component[] {
    return this.#surfaces.get(name)?.output("") ?? NONE;
  }

  /** Ids of the turns with permission requests, open or answered, oldest first. */
  get askingTurns(): readonly string[] {
    return [...this.#asking];
  }

  /**
   * Return the component with this id, on any level, and its surface.
   *
   * @param on Name of the surface to search; the first surface that has the component if absent.
   */
  find(id: string, on?: string): { readonly surface: string; readonly component: Component } | undefined {
    for (const [surface, tree] of this.#surfaces) {
      if ((on ?? surface) === surface && tree.nodes.has(id)) return { surface, component: tree.whole(id) };
    }
    return undefined;
  }

  /**
   * Apply one message; ignore messages that change nothing on the screen.
   *
   * @returns `null`, or the reason why a commit was refused. Nothing of a refused commit is applied, so from then on
   *   this screen differs from the agent side's record of it.
   */
  apply(message: AgentMessage): string | null {
    switch (message.type) {
      case "delta":
        this.#delta(message);
        break;
      case "render":
      case "patch":
        // After a lost message, the rest of the commit would show a half-finished change.
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
          // An edit replaces the input but not its mark: a new mark would move the input to the end of the turn.
          message.edited && inputs.length > 0
            ? { inputs: inputs.with(0, message) }
            : { inputs: [...inputs, message], marks: [...marks, this.#mark("input", inputs, message)] },
        );
        break;
      case "turn": {
        const { status, position = null, permission, paused = false } = message;
        if (permission) this.#asking.add(message.turn_id ?? "");
        // A repeated request for the same component replaces the old one: otherwise the question would appear twice.
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

  /** Reuse the turn objects of the previous screen that have the same content, so that their views are not redrawn. */
  inherit(before: Screen): void {
    for (const id of this.turnIds) {
      const [old, current] = [before.turn(id), this.turn(id)];
      if (old && printOf(old) === printOf(current as TurnState)) this.#states.set(id, old);
    }
  }

  /** Discard the pending changes, because their commit will not arrive. */
  dropPending(): void {
    this.#pending = [];
    this.#spoiled = false;
  }

  /** Discard everything up to the next commit, because a message before it is missing. */
  spoilPending(): void {
    this.#pending = [];
    this.#spoiled = true;
  }

  /**
   * Count the size of the pending changes, and discard them if they exceed the limit.
   *
   * @param size Size of the last applied frame, in characters.
   * @returns Whether the limit was exceeded.
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
    // Pending changes of a closed surface are dropped: their commit would create the surface again.
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

  /** Return the mark of the next item of a kind: at the position that its message names, or after all output. */
  #mark(kind: Mark["kind"], before: ArrayLike<unknown>, { turn_id, behind }: Marking): Mark {
    const turnId = turn_id ?? "";
    // In a snapshot or a catch-up, later output may already be there, so the message names its position.
    const last = (this.#surfaces.get("main") as Tree).outputs.get(turnId)?.at(-1);
    const place = behind ? { component: null, characters: null, ...behind } : this.#endOf(last);
    this.#watch(place.component, turnId);
    return { kind, number: before.length, ...place };
  }

  /** Return the position after a root component; in a text part, after its current text. */
  #endOf(id: string | null = null): Required<OutputAnchor> {
    // A delta may extend the text part later. The mark belongs before that text, so its position
    // includes the current length.
    const node = id !== null && (this.#surfaces.get("main") as Tree).nodes.get(id);
    const content = node && id?.includes("/") ? node.own.props.content : null;
    return { component: id, characters: typeof content === "string" ? lengthOf(content) : null };
  }

  #watch(root: string | null | undefined, turnId: string): void {
    if (root == null) return;
    const turns = this.#marked.get(root) ?? new Set();
    this.#marked.set(root, turns.add(turnId));
  }

  /** Move the marks after a removed root component to its heir. */
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
      // A component after the last text part has closed it: the text must not move before the component.
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
    // A commit may change several surfaces. Their changes are kept only when all of them fit: otherwise
    // a late failure would leave a part of the commit on the screen.
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

/** Return the content of a turn as text, without sequence numbers and anchors of its inputs. */
function printOf({ inputs, ...turn }: TurnState): string {
  return JSON.stringify([turn, inputs.map(({ seq, behind, ...others }) => others)]);
}

/** Return the tool calls with one changed: the running call with this id or, without an id, the oldest of this tool. */
function changed(
  tools: readonly ToolRun[],
  { tool, call_id }: { readonly tool?: string; readonly call_id?: string },
  change: Partial<ToolRun>,
): readonly ToolRun[] {
  // A call that has ended is skipped: the draft sends no ids, and a later call of the same tool has the same name.
  const at = tools.findIndex((run) => run.ok === null && (call_id ? run.callId === call_id : run.tool === tool));
  return at < 0 ? tools : tools.with(at, { ...(tools[at] as ToolRun), ...change });
}

/** Return whether a root component of a turn is a text part. */
export function isTextPart(component: Component, turnId: string): boolean {
  const { id, type, props } = component;
  return type === "text" && partNumber(id, turnId) > 0 && typeof props.content === "string";
}

/** Return the number of a text part of this turn, or 0 for any other component. */
function partNumber(id: string, turnId: string): number {
  const at = id.lastIndexOf("/");
  const number = id.slice(at + 1);
  const ours = id.slice(0, Math.max(at, 0)) === turnId && /^[0-9]{1,9}$/.test(number);
  return ours ? Number(number) : 0;
}

/** Return an unused id for a new text part. It follows the last part in the output, as on every other renderer. */
function nextPart(tree: Tree, turnId: string, ids: readonly string[]): string {
  const before = ids.findLast((id) => partNumber(id, turnId));
  let number = before === undefined ? 1 : partNumber(before, turnId) + 1;
  // The id may be in use elsewhere on the surface: the text part would replace that component.
  while (tree.nodes.has(`${turnId}/${number}`)) number += 1;
  return `${turnId}/${number}`;
}

/** Return the name of the tree's output that a turn writes to on a surface. */
function outputOf(turnId: string, surface: string): string {
  return surface === "main" ? turnId : "";
}
