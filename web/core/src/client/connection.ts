/**
 * A renderer's end of one session, without I/O: frames in, messages out, and the screen kept.
 *
 * Theory of operation. One object outlives many links. `hello` is the first message of each: it
 * names the last place that was applied, so that the agent side sends what was missed, or a
 * snapshot. A snapshot is built on a screen aside, which takes the old one's place at the commit
 * that carries its `seq`; until then the old one shows. A catch-up has no places until its
 * last commit: between, this renderer has no place (`epoch` is `null`), so that a link that is lost
 * just then is followed by a snapshot. The same where something came that cannot be applied. What
 * has a place that was applied already came twice and is ignored.
 * A server that knows the v0.1 draft alone answers our hello with an error, or not at all: then `DraftTurns`
 * makes what is missing.
 * Source: protocol.md 2.3.
 */

import { NO_CODE } from "../protocol/draft_fields.js";
import { DraftTurns } from "../protocol/draft_turns.js";
import { INVALID_MESSAGE, INVALID_PATCH, RESOURCE_LIMIT } from "../protocol/generated/codes.js";
import type {
  AgentHello,
  AgentMessage,
  Input,
  JsonObject,
  RendererHello,
  SessionReady,
} from "../protocol/generated/wire.js";
import { Screen } from "../protocol/screen.js";
import { readFrame } from "../protocol/shape.js";

/** These have no place of their own: applied twice, they show twice. */
const SHOWN_ONCE = ["delta", "tool_start", "commit", "input", "surface"];

interface Addressed {
  readonly session_id?: string | null;
}

/** Speaks the session dialect for one renderer on one session. */
export class RendererConnection {
  screen = new Screen();
  /** Of the session's log; `null` while this screen has no place in it. */
  epoch: string | null = null;
  /** The last place applied. */
  seq = 0;
  /** What came before the screen that shows: how many turns it does not have. */
  declare ready: SessionReady | undefined;
  agent: AgentHello | null = null;
  sessionId: string | null;
  #hello: RendererHello;
  #aside: Screen | null = null;
  #nextEpoch: string | null = null;
  /** Nothing on this link has shown yet whether the agent side knows our hello. */
  isUndecided = true;
  #isDraft = false;
  #draft = new DraftTurns();

  constructor(hello: RendererHello) {
    this.#hello = hello;
    this.sessionId = hello.session_id ?? null;
  }

  /** True until the screen shows the session: before the first answer, and during a snapshot. */
  get loading(): boolean {
    return this.#aside !== null || (this.isDesynchronised && !this.isDraft);
  }

  /** Whether the screen has no place, and nothing that comes on this link restores it. */
  get isDesynchronised(): boolean {
    return this.epoch === null && this.#nextEpoch === null;
  }

  /** Whether the agent side knows the draft alone: it answers no hello, and acknowledges nothing. */
  get isDraft(): boolean {
    return this.#isDraft;
  }

  /** The first message of a link; what is pending of the one before is dropped. */
  hello(): RendererHello {
    this.#aside = null;
    this.#nextEpoch = this.epoch;
    this.isUndecided = true;
    this.screen.dropPending();
    const { epoch, seq, sessionId: session_id } = this;
    return { ...this.#hello, session_id, resume: epoch === null ? null : { epoch, seq } };
  }

  /** Turns to another session, with an empty screen; the next `hello` says so, on this link or another. */
  turnTo(sessionId: string | null, workflow?: string | null): void {
    if (workflow !== undefined) this.#hello = { ...this.#hello, workflow };
    this.sessionId = sessionId;
    this.ready = undefined;
    this.#aside = null;
    this.screen = new Screen();
    this.#draft = new DraftTurns();
    this.#desynchronise();
    this.seq = 0;
  }

  /** Applies and returns what shows an input that was sent to a server of the draft; of others nothing. */
  echo(input: Input): AgentMessage[] {
    return this.#isDraft ? this.#applied(this.#draft.begin(input)) : [];
  }

  /**
   * Takes one frame, applies it to the screen, and returns its messages in order. A message of an
   * unknown type is ignored. A frame that cannot be read becomes an `error`, and so does,
   * after it, a commit that cannot be applied. Never throws.
   */
  receive(frame: unknown): AgentMessage[] {
    const { messages, fault, type } = readFrame(frame);
    if (fault !== null) {
      this.#desynchronise();
      this.#miss(type);
      return [local(INVALID_MESSAGE, fault)];
    }
    const out = messages.flatMap((message) => this.#applied(this.#placed(message)));
    if ((this.#aside ?? this.screen).weighPending(String(frame).length)) {
      this.#desynchronise();
      out.push(local(RESOURCE_LIMIT, "too much came without a commit"));
    }
    return out;
  }

  #applied(messages: readonly AgentMessage[]): AgentMessage[] {
    const out: AgentMessage[] = [];
    for (const message of messages) {
      if (this.#cameBefore(message)) continue;
      out.push(message);
      const refused = this.#apply(message);
      if (refused === null) continue;
      this.#desynchronise();
      out.push(local(INVALID_PATCH, `a commit that does not fit: ${refused}`));
    }
    return out;
  }

  /** A message with those that a server of the draft does not send. */
  #placed(message: AgentMessage): readonly AgentMessage[] {
    if (message.type === "session") this.isUndecided = this.#isDraft = false;
    else if (message.type === "hello") this.isUndecided &&= !message.capabilities.features?.includes("resume");
    else if (this.isUndecided && isOfDraft(message)) {
      const begun = this.#beginDraft();
      return message.type === "error" ? begun : [...begun, ...this.#draft.placed(message)]; // no input was sent before
    }
    return this.#isDraft ? this.#draft.placed(message) : [message];
  }

  /** Begins the session, if the agent side has said hello and leaves ours without an answer. */
  assumeDraft(): AgentMessage[] {
    return this.isUndecided && this.agent ? this.#applied(this.#beginDraft()) : [];
  }

  #beginDraft(): AgentMessage[] {
    this.isUndecided = false;
    this.#isDraft = true;
    this.agent ??= { type: "hello", v: 1, capabilities: { components: [] } };
    return this.#draft.connected();
  }

  #cameBefore(message: AgentMessage): boolean {
    if (message.type === "session") return false;
    // Between a further hello and its `session` the session before is still sent.
    if (this.ready === undefined && this.agent && !this.isDraft && (message as Addressed).session_id != null)
      return true;
    if (!("seq" in message) || message.seq == null) return false;
    return this.#aside === null && message.seq <= this.seq;
  }

  #desynchronise(): void {
    this.epoch = this.#nextEpoch = null;
  }

  /** Takes care that nothing of a commit shows of which something is missing. */
  #miss(type: string | null): void {
    const screen = this.#aside ?? this.screen;
    if (type === "commit") screen.dropPending();
    else if (type === null || type === "render" || type === "patch") screen.spoilPending();
  }

  #apply(message: AgentMessage): string | null {
    if (message.type === "hello") this.agent = message;
    else if (message.type === "session") this.#session(message);
    else if (message.type !== "ack" && message.type !== "ping" && message.type !== "pong") return this.#show(message);
    return null;
  }

  #session(ready: SessionReady): void {
    const { epoch, seq, resume } = ready;
    this.sessionId = ready.session_id;
    if (resume === "replay" && epoch === this.epoch) return;
    this.ready = ready;
    this.#aside = new Screen();
    this.#aside.sharedState = (ready.state ?? {}) as JsonObject;
    this.epoch = null;
    this.#nextEpoch = epoch;
    if (resume === "new") this.#swap(seq);
    else if (resume === "replay") this.#swap(0); // of all that there is: we named no place
  }

  #show(message: Exclude<AgentMessage, { type: "hello" | "session" | "ack" | "ping" | "pong" }>): string | null {
    const { type, seq, turn_id } = message;
    const refused = (this.#aside ?? this.screen).apply(message);
    if (type === "render" || type === "patch") return refused;
    if (this.#aside !== null) {
      if (seq != null && type === "commit") this.#swap(seq);
    } else if (seq != null) {
      this.seq = Math.max(this.seq, seq);
      this.epoch ??= this.#nextEpoch;
    } else if (SHOWN_ONCE.includes(type) || (type === "error" && turn_id != null && message.payload.debug == null)) {
      this.#nextEpoch = this.epoch ?? this.#nextEpoch;
      this.epoch = null;
    }
    return refused;
  }

  #swap(seq: number): void {
    (this.#aside as Screen).inherit(this.screen);
    this.screen = this.#aside as Screen;
    this.#aside = null;
    this.epoch = this.#nextEpoch;
    this.seq = seq;
  }
}

/** Whether a message in place of a `session` shows that the server knows the draft alone. */
function isOfDraft(message: AgentMessage): boolean {
  if (message.type === "error") return message.payload.code === NO_CODE;
  return (
    ["delta", "tool_start", "render", "commit"].includes(message.type) &&
    (message as { seq?: number | null }).seq == null
  );
}

/** An error that this side makes; it has no `session_id`. */
function local(code: number, error: string): AgentMessage {
  return { type: "error", v: 1, payload: { error, code } };
}
