/**
 * A renderer's end of one session, without I/O: frames in, messages out, and the state of the screen.
 *
 * Theory of operation. One object outlives many links. `hello` is the first message on each link. It names
 * the last applied position (`epoch` and `seq`), so that the agent side sends the missed messages, or a snapshot.
 * A snapshot is built on a second screen. It replaces the visible one at the commit that carries a `seq`; until
 * then the old screen stays visible. Messages of a catch-up carry no `seq` before its last commit. Until that
 * commit this renderer has no position (`epoch` is `null`): if the link is lost meanwhile, the next one begins with
 * a snapshot. The same happens after a message that cannot be applied. A message with an already applied `seq` is a
 * duplicate and is ignored.
 *
 * A server that only knows the v0.1 draft answers our hello with an error, or not at all. `DraftTurns` then
 * creates the messages that such a server does not send. Source: protocol.md 2.3.
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

/** Types that are shown twice if they are applied twice. A repetition without a `seq` cannot be detected. */
const SHOWN_ONCE = ["delta", "tool_start", "commit", "input", "surface"];

interface Addressed {
  readonly session_id?: string | null;
}

/** Speaks the session dialect for one renderer on one session. */
export class RendererConnection {
  screen = new Screen();
  /** Epoch of the session's log; `null` while this screen has no position in the log. */
  epoch: string | null = null;
  /** Last applied sequence number. */
  seq = 0;
  /** The `session` message that began this screen. It says how many turns the screen does not have. */
  declare ready: SessionReady | undefined;
  agent: AgentHello | null = null;
  sessionId: string | null;
  #hello: RendererHello;
  /** Screen that a snapshot is built on; `null` unless a snapshot is arriving. */
  #aside: Screen | null = null;
  /** Value of `epoch` from the next message with a `seq`; `null` if nothing on this link can restore the position. */
  #nextEpoch: string | null = null;
  /** Whether it is still unknown on this link if the agent side understands our hello. */
  isUndecided = true;
  #isDraft = false;
  #draft = new DraftTurns();

  constructor(hello: RendererHello) {
    this.#hello = hello;
    this.sessionId = hello.session_id ?? null;
  }

  /** True until the screen shows the session: before the first answer and during a snapshot. */
  get loading(): boolean {
    return this.#aside !== null || (this.isDesynchronised && !this.isDraft);
  }

  /** Whether the screen has no position in the log, and no message on this link can restore it. */
  get isDesynchronised(): boolean {
    return this.epoch === null && this.#nextEpoch === null;
  }

  /** Whether the agent side only knows the draft: it does not answer a hello or acknowledge an input. */
  get isDraft(): boolean {
    return this.#isDraft;
  }

  /** Begin a link: drop the pending changes of the previous one, and return the first message to send. */
  hello(): RendererHello {
    this.#aside = null;
    this.#nextEpoch = this.epoch;
    this.isUndecided = true;
    this.screen.dropPending();
    const { epoch, seq, sessionId: session_id } = this;
    return { ...this.#hello, session_id, resume: epoch === null ? null : { epoch, seq } };
  }

  /** Switch to another session, with an empty screen. The next `hello`, on this link or another, asks for it. */
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

  /** Apply and return the messages that show a sent input, if the server only knows the draft: others echo it. */
  echo(input: Input): AgentMessage[] {
    return this.#isDraft ? this.#applied(this.#draft.begin(input)) : [];
  }

  /**
   * Receive one frame: apply it to the screen and return its messages in order. Never throws.
   *
   * A message of an unknown type is ignored. A frame that cannot be read becomes an `error`. A commit that cannot be
   * applied is followed by an `error`.
   */
  receive(frame: unknown): AgentMessage[] {
    const { messages, fault, type } = readFrame(frame);
    if (fault !== null) {
      // The lost frame may have changed the screen. Without a position, the next link begins with a snapshot.
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

  /** Return a message, with those that a server of the draft does not send. */
  #placed(message: AgentMessage): readonly AgentMessage[] {
    if (message.type === "session") this.isUndecided = this.#isDraft = false;
    else if (message.type === "hello") this.isUndecided &&= !message.capabilities.features?.includes("resume");
    else if (this.isUndecided && isOfDraft(message)) {
      const begun = this.#beginDraft();
      // No input was sent yet, so an error is the answer to our hello and not an error of the conversation.
      return message.type === "error" ? begun : [...begun, ...this.#draft.placed(message)];
    }
    return this.#isDraft ? this.#draft.placed(message) : [message];
  }

  /** Begin a session of the draft, if the agent side has sent its hello but no answer to ours. */
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
    // After a second hello on the same link, messages of the previous session arrive until the new `session`. They
    // would appear on the screen of the new one.
    if (this.ready === undefined && this.agent && !this.isDraft && (message as Addressed).session_id != null)
      return true;
    if (!("seq" in message) || message.seq == null) return false;
    return this.#aside === null && message.seq <= this.seq;
  }

  #desynchronise(): void {
    this.epoch = this.#nextEpoch = null;
  }

  /**
   * Discard the pending changes if a lost message may belong to their commit: a part of a commit must not be shown.
   *
   * @param type Type of the lost message; `null` if it is unknown.
   */
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
    // A replay continues the screen; every other answer begins a new one.
    if (resume === "replay" && epoch === this.epoch) return;
    this.ready = ready;
    this.#aside = new Screen();
    this.#aside.sharedState = (ready.state ?? {}) as JsonObject;
    this.epoch = null;
    this.#nextEpoch = epoch;
    if (resume === "new") this.#swap(seq);
    else if (resume === "replay") this.#swap(0); // we named no position, so all messages of the session follow
  }

  #show(message: Exclude<AgentMessage, { type: "hello" | "session" | "ack" | "ping" | "pong" }>): string | null {
    const { type, seq, turn_id } = message;
    const refused = (this.#aside ?? this.screen).apply(message);
    // These only take effect with their commit, which carries the `seq`.
    if (type === "render" || type === "patch") return refused;
    if (this.#aside !== null) {
      if (seq != null && type === "commit") this.#swap(seq);
    } else if (seq != null) {
      this.seq = Math.max(this.seq, seq);
      this.epoch ??= this.#nextEpoch;
    } else if (SHOWN_ONCE.includes(type) || (type === "error" && turn_id != null && message.payload.debug == null)) {
      // A catch-up after a lost link would repeat this message. Without a position the next link gets a snapshot.
      this.#nextEpoch = this.epoch ?? this.#nextEpoch;
      this.epoch = null;
    }
    return refused;
  }

  /** Make the second screen the visible one. */
  #swap(seq: number): void {
    (this.#aside as Screen).inherit(this.screen);
    this.screen = this.#aside as Screen;
    this.#aside = null;
    this.epoch = this.#nextEpoch;
    this.seq = seq;
  }
}

/** Return whether a message that arrives instead of `session` shows that the server only knows the draft. */
function isOfDraft(message: AgentMessage): boolean {
  if (message.type === "error") return message.payload.code === NO_CODE;
  return (
    ["delta", "tool_start", "render", "commit"].includes(message.type) &&
    (message as { seq?: number | null }).seq == null
  );
}

/** Return an error of this side. It has no `session_id`, unlike errors of a session. */
function local(code: number, error: string): AgentMessage {
  return { type: "error", v: 1, payload: { error, code } };
}
