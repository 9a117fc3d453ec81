/**
 * Cells for the chat hooks of any framework, computed from the turns of a client. A message is the same object
 * until something in it changes, so a view redraws only the messages that changed.
 */

import type { Cell } from "../client/cells.js";
import { sameList, sameValues } from "../protocol/same.js";
import { messagesOf, outgoingMessage, type ChatMessage } from "./messages.js";
import type { ArpClient } from "../client/client.js";
import type { Outgoing } from "../client/outbox.js";
import type { ToolRun, TurnState } from "../protocol/screen.js";

/** One tool call, in the form of the draft's packages. */
export interface ToolCardState {
  name: string;
  displayName: string;
  status: "running" | "done" | "failed";
  /** Time when this renderer first saw it, in ms since the epoch. */
  startTime: number;
  /** Duration, such as `1.2s`, if the agent side sends it or this renderer saw start and end. */
  elapsed?: string;
  callId: string;
  /** The tool call with its arguments, progress and result. */
  run?: ToolRun;
}

interface Seen {
  readonly state: TurnState;
  readonly messages: readonly ChatMessage[];
}

const QUIET: readonly never[] = [];

/** Cells of one client's chat. */
export class ChatView {
  /** Messages in reading order; messages that are not echoed yet come last. */
  readonly messages: Cell<ChatMessage[]>;
  /** Tool calls of the newest turn that has any. */
  readonly tools: Cell<ToolCardState[]>;
  /** Whether an answer is being written or expected, so that it can be stopped. */
  readonly isStreaming: Cell<boolean>;
  readonly #client: ArpClient;
  readonly #now: () => number;
  readonly #turns = new Map<string, Seen>();
  readonly #outgoing = new WeakMap<Outgoing, ChatMessage | null>();
  /** Start and duration of each tool call as seen here, in ms, by call id. */
  readonly #spans = new Map<string, { readonly startTime: number; took?: number }>();
  /** Ids of the turns that had ended when the session was opened. */
  readonly #restored = new Set<string>();
  #session: string | null = null;
  #isOpened = false;
  #messages: ChatMessage[] = [];
  #tools: ToolCardState[] = [];
  #toolRuns: readonly ToolRun[] = QUIET;

  /** @param now Returns the time in ms since the epoch. */
  constructor(client: ArpClient, now: () => number = Date.now) {
    this.#client = client;
    this.#now = now;
    const cell = <T>(get: () => T) => client.store.derived(get, (name) => /^(turn|status|outgoing)/.test(name));
    this.messages = cell(() => this.#allMessages());
    this.tools = cell(() => this.#newestTools());
    this.isStreaming = cell(() => this.#isBusy());
  }

  #allMessages(): ChatMessage[] {
    const { store } = this.#client;
    this.#open();
    const messages = store.turnIds.get().flatMap((id) => this.#turnMessages(id));
    for (const item of store.outgoing.get()) {
      let message = this.#outgoing.get(item);
      if (message === undefined) this.#outgoing.set(item, (message = outgoingMessage(item)));
      if (message !== null) messages.push(message);
    }
    return (this.#messages = sameList(this.#messages, messages) as ChatMessage[]);
  }

  /** Record the turns that exist when a session is opened, and forget those of the previous session. */
  #open(): void {
    const { store } = this.#client;
    const { sessionId, loading } = store.status.get();
    if (sessionId !== this.#session) {
      if (this.#session !== null) {
        this.#isOpened = false;
        for (const kept of [this.#turns, this.#restored, this.#spans]) kept.clear();
      }
      this.#session = sessionId;
    }
    if (this.#isOpened) return;
    for (const id of store.turnIds.get()) {
      const turn = store.turn(id).get();
      if (turn?.final && turn.status !== "waiting") this.#restored.add(id); // a waiting turn can still be answered
    }
    this.#isOpened = !loading;
  }

  #turnMessages(id: string): readonly ChatMessage[] {
    const state = this.#client.store.turn(id).get();
    if (state === undefined) return QUIET;
    const seen = this.#turns.get(id);
    if (seen?.state === state) return seen.messages;
    const messages = kept(messagesOf(state, this.#restored.has(id)), seen?.messages ?? QUIET);
    this.#turns.set(id, { state, messages });
    return messages;
  }

  #newestTools(): ToolCardState[] {
    const { store } = this.#client;
    const ids = store.turnIds.get();
    let runs = QUIET as readonly ToolRun[];
    for (let at = ids.length - 1; at >= 0 && runs.length === 0; at -= 1) {
      runs = store.turn(ids[at] as string).get()?.tools ?? QUIET;
    }
    if (runs !== this.#toolRuns) {
      this.#toolRuns = runs;
      this.#tools = runs.map((run) => this.#card(run));
    }
    return this.#tools;
  }

  #card(run: ToolRun): ToolCardState {
    const { callId, tool, ok, durationMs } = run;
    let span = this.#spans.get(callId);
    if (!span) this.#spans.set(callId, (span = { startTime: this.#now() }));
    else if (ok !== null) span.took ??= this.#now() - span.startTime;
    const took = durationMs ?? span.took;
    return {
      name: tool,
      displayName: toolTitle(tool),
      status: ok === null ? "running" : ok ? "done" : "failed",
      startTime: span.startTime,
      callId,
      run,
      ...(took != null && { elapsed: `${(took / 1000).toFixed(1)}s` }),
    };
  }

  #isBusy(): boolean {
    const { store } = this.#client;
    if (store.status.get().activeTurn !== null) return true;
    return store.outgoing
      .get()
      .some((item) => (item.phase === "sent" || item.phase === "accepted") && outgoingMessage(item) !== null);
  }
}

/** Return the name of a tool for display: `render_sales_chart` becomes "Sales Chart". */
export function toolTitle(name: string): string {
  const words = name
    .replace(/^render_/, "")
    .split("_")
    .filter(Boolean);
  return words.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1)).join(" ");
}

/** Return the new messages, with the old object for each message that did not change. */
function kept(messages: readonly ChatMessage[], old: readonly ChatMessage[]): readonly ChatMessage[] {
  const before = new Map(old.map((message) => [message.id, message]));
  return messages.map((message) => {
    const same = before.get(message.id);
    return same !== undefined && sameMessage(same, message) ? same : message;
  });
}

function sameMessage(one: ChatMessage, other: ChatMessage): boolean {
  return (
    (["content", "status", "error", "file", "at"] as const).every((name) => one[name] === other[name]) &&
    sameList(one.parts, other.parts, sameValues) === one.parts
  );
}
