/**
 * The client: one renderer on one session, for as long as it is wanted.
 *
 * It brings the parts together: frames from the driver go to the connection, which keeps the
 * screen; inputs go through the outbox, which keeps them until the agent side echoes them; the
 * store notifies its watchers; callbacks are called as things happen.
 */

import { parseAddress, type Address } from "../transport/address.js";
import { answerOfValue, type InputType } from "../protocol/answers.js";
import { Calls, type ArpClientCallbacks } from "./callbacks.js";
import { RendererConnection } from "./connection.js";
import { createDriver, type Driver } from "../transport/driver.js";
import {
  INVALID_MESSAGE,
  PERMISSION_DENIED,
  RESOURCE_LIMIT,
  SESSION_NOT_FOUND,
  UNAUTHENTICATED,
  VERSION_MISMATCH,
} from "../protocol/generated/codes.js";
import type {
  AgentCapabilities,
  AgentMessage,
  Component,
  ErrorPayload,
  Input,
  Json,
  JsonObject,
  Permission,
  RendererAck,
  SessionReady,
} from "../protocol/generated/wire.js";
import { newId } from "../protocol/new_id.js";
import { rendererHello, resolveOptions, type ArpClientOptions, type Resolved } from "./options.js";
import { answerTo, Outbox, type Attachment, type Outgoing } from "./outbox.js";
import type { Screen } from "../protocol/screen.js";
import { activeTurn, Store, type Status } from "./store.js";
import { ArpError, type SessionAPI } from "../sessions/session_types.js";
import { createSessionAPI } from "../sessions/sessions.js";
import { onWake } from "../transport/wake.js";

/** What goes with an input. */
export interface SendOptions {
  /** The component that it answers. */
  source?: string | null;
  surface?: string;
  /** Files, which go over HTTP; `part` names the field of a form. */
  files?: readonly (File | Attachment)[];
  /** An id of yours; the same one twice is one input. */
  id?: string;
  /** The turn that it replaces. */
  edits?: string | null;
}

/** How to turn to another session. */
export interface TurnOptions {
  /** The agent of a session that is made, `null` for the app's first; as before if absent. */
  workflow?: string | null | undefined;
  /** What shows stays until the other session has loaded, for a second at most: no empty screen between. */
  keep?: boolean;
}

/** How a component shows: as its type, as something simpler, or not at all. */
export type Presented = NonNullable<RendererAck["presented"]>[string];

type Waiter = (turnId: string | null, error?: ErrorPayload) => void;

/** Coming back would meet the same answer. */
const FATAL = new Set<number>([
  VERSION_MISMATCH,
  SESSION_NOT_FOUND,
  INVALID_MESSAGE,
  UNAUTHENTICATED,
  PERMISSION_DENIED,
]);
/** A server that has said hello and leaves ours without an answer for so long knows the draft alone. */
const DRAFT_AFTER_MS = 1000;
const RETRY_UPLOAD_MS = 3000;
/** What showed before stays for so long while another session loads. */
const KEEP_MS = 1000;
/** Room for the session, which joins an input when it is sent. */
const ROOM_BYTES = 256;

/** A renderer without a screen of its own. */
export class ArpClient {
  /** What to watch. */
  readonly store: Store;
  /** Lists over HTTP, from the same server with the same token. */
  readonly sessions: SessionAPI;
  readonly address: Address;
  readonly #options: Resolved;
  readonly #connection: RendererConnection;
  readonly #driver: Driver;
  readonly #outbox: Outbox;
  readonly #calls: Calls;
  readonly #waiters = new Map<string, Waiter[]>();
  readonly #uploads = new Map<string, AbortController>();
  #status: Status | null = null;
  #stopListening: (() => void) | null = null;
  /** What shows in place of a session that has not loaded yet. */
  #kept: Screen | null = null;
  #keeping: ReturnType<typeof setTimeout> | undefined;
  #assuming: ReturnType<typeof setTimeout> | undefined;
  #committed = 0;
  #acknowledged = 0;
  /** How components show that were not always drawn as what they are, and which of it the server has not been sent. */
  readonly #presented = new Map<string, Presented>();
  #unreported = new Set<string>();

  constructor(options: string | ArpClientOptions, callbacks: ArpClientCallbacks = {}) {
    const resolved = resolveOptions(options);
    this.#options = resolved;
    this.address = parseAddress(resolved.url, resolved.transport);
    this.#connection = new RendererConnection(rendererHello(resolved));
    this.#calls = new Calls(callbacks);
    this.#outbox = new Outbox(resolved.storage, this.address.base, () => this.store?.mark("outgoing"));
    this.#outbox.open(resolved.sessionId, false);
    this.#driver = createDriver({
      address: this.address,
      world: resolved,
      random: resolved.random,
      maxAttempts: resolved.maxReconnectAttempts,
      hello: () => this.#connection.hello(),
      token: resolved.token,
      answers: () => this.capabilities?.features?.includes("ping") ?? false,
      frame: (text) => this.#receive(text),
      changed: (state) => {
        this.#changed();
        if (state.phase !== "online" && state.phase !== "connecting") this.#offline();
      },
    });
    this.store = new Store(
      {
        screen: () => this.screen,
        status: () => (this.#status ??= this.#newStatus()),
        outgoing: () => this.#outbox.items,
        flushed: () => this.#displayed(),
      },
      resolved.schedule,
    );
    this.sessions = createSessionAPI(this.address.base, resolved);
  }

  // -- reading -----------------------------------------------------------------------------------

  /** Whether there is a connection, and the server has answered with the session. */
  get connected(): boolean {
    return this.#driver.isWelcome;
  }

  /** What the agent side can do; `null` until its hello. */
  get capabilities(): AgentCapabilities | null {
    return this.#connection.agent?.capabilities ?? null;
  }

  /** The session; `null` until the server has named it. */
  get sessionId(): string | null {
    return this.#connection.sessionId;
  }

  /** What shows now; `store` is for those who watch. */
  get screen(): Screen {
    return this.#kept ?? this.#connection.screen;
  }

  // -- the connection ----------------------------------------------------------------------------

  /**
   * Connects, and from then on comes back by itself. While it waits to come back, or after a
   * refusal, it tries at once; while there is a connection this does nothing.
   */
  connect(): void {
    this.#stopListening ??= onWake(this.#driver);
    this.#driver.connect();
  }

  /** Ends the connection. What is not sent yet is kept for the next one. */
  disconnect(): void {
    this.#stopListening?.();
    this.#stopListening = null;
    for (const upload of this.#uploads.values()) upload.abort();
    this.#uploads.clear();
    this.#driver.disconnect();
  }

  /**
   * Turns to another session; `null` begins a new one. The screen is empty until it has loaded, unless `keep` says
   * otherwise. A connection that is there stays, where the server can do that.
   */
  setSessionId(sessionId: string | null, { workflow, keep = false }: TurnOptions = {}): void {
    if (sessionId === this.sessionId && sessionId !== null) return;
    const { screen } = this;
    this.#connection.turnTo(sessionId, workflow);
    this.#outbox.open(sessionId, false);
    this.#committed = this.#acknowledged = 0;
    this.#presented.clear();
    this.#unreported.clear();
    this.#keep(keep ? screen : null);
    this.#driver.turn(!this.#connection.isDraft);
  }

  // -- what the user does ------------------------------------------------------------------------
  // Each returns the input's id. While there is no connection it waits, also over a reload.

  sendText(text: string, options: SendOptions = {}): string {
    const isFile = options.files !== undefined && options.files.length > 0;
    return this.send(isFile ? "file" : "text", { text }, options);
  }

  sendAction(componentId: string, action: string, payload?: unknown, options: SendOptions = {}): string {
    const data = { action, payload } as JsonObject; // what is undefined is not sent
    return this.send("action", data, componentId === "" ? options : { ...options, source: componentId });
  }

  sendFormSubmit(fields: Record<string, unknown>, action?: string, options: SendOptions = {}): string {
    return this.send("form_submit", { fields, action } as JsonObject, options);
  }

  /** Answers a question, unless an answer is on its way; see `answerOfValue` for the value. */
  answer(component: Component, value: Json, options: SendOptions = {}): string {
    return this.#answer(component, ...answerOfValue(component, value), options);
  }

  /** Declines to answer a question that lets people do so (`can_decline`), unless an answer is on its way. */
  decline(component: Component, options: SendOptions = {}): string {
    return this.#answer(component, "action", { action: "decline" }, options);
  }

  /** Closes a surface, a popup or an overlay, for every renderer. */
  closeSurface(surface: string): string {
    return this.send("action", { action: "arp.close" }, { surface });
  }

  /** Tells the agent that the user turned to a surface or away from it, or its size. Lost while there is no connection. */
  tellOfSurface(surface: string, what: "focus" | "unfocus" | "resize", data: JsonObject = {}): void {
    if (!this.connected || !this.capabilities?.features?.includes("overlays")) return;
    this.#driver.send({ type: "input", v: 1, input_type: what, data, surface, session_id: this.sessionId } as Input);
  }

  /** Stops a turn: the one that runs, if none is named. A queued one is removed from the queue. */
  stop(turnId?: string): string {
    return this.#command("cancel", turnId);
  }

  /** Replaces the input that began a turn; a queued turn keeps its place. */
  edit(turnId: string, text: string, options: SendOptions = {}): string {
    return this.sendText(text, { ...options, edits: turnId });
  }

  /** Has the input of a turn answered again, as another version of the turn. */
  regenerate(turnId: string): string {
    return this.#command("regenerate", turnId);
  }

  /** Shows a version of a turn, and what followed it. */
  showVersion(turnId: string): string {
    return this.#command("branch", turnId);
  }

  /** Moves a turn to the front of the queue. */
  promote(turnId: string): string {
    return this.#command("promote", turnId);
  }

  /** Resumes the queue, which is paused since a turn failed. */
  goOn(): string {
    return this.#command("continue");
  }

  /**
   * Allows a tool that asks for permission; `session`: what the question names, also from now on.
   *
   * @param asked The permission as it was shown: an answer to another input is refused.
   * @param updatedInput What is allowed instead of what was shown, if the permission is editable.
   */
  grant(
    component: Component,
    scope: "once" | "session" = "once",
    asked?: Permission,
    updatedInput?: JsonObject,
  ): string {
    return this.#decide(component, "confirm", { scope, digest: asked?.digest, updated_input: updatedInput }, asked);
  }

  /** Denies a tool that asks for permission, and says why. */
  deny(component: Component, reason = "", asked?: Permission): string {
    return this.#decide(component, "deny", { reason, digest: asked?.digest }, asked);
  }

  #command(name: string, turn_id?: string): string {
    const data = { action: `arp.${name}`, payload: { turn_id } };
    return this.send("action", data as JsonObject); // what is undefined is not sent
  }

  #decide(component: Component, action: string, payload: Record<string, unknown>, asked?: Permission): string {
    const data = { action, payload } as JsonObject; // what is undefined is not sent
    return this.#answer(component, "action", data, asked ? { surface: asked.surface ?? "main" } : {});
  }

  #answer({ id: source }: Component, inputType: InputType, data: JsonObject, options: SendOptions): string {
    const pending = answerTo(this.#outbox.items, source, options.surface);
    const surface = this.#connection.screen.find(source)?.surface ?? "main";
    return pending?.id ?? this.send(inputType, data, { surface, ...options, source });
  }

  /** Records how a component shows; the agent is sent it where that is not as its type (`turn.shown_as`). */
  presented(componentId: string, how: Presented): void {
    if ((this.#presented.get(componentId) ?? "native") === how) return;
    this.#presented.set(componentId, how);
    if (this.#unreported.size === 0) queueMicrotask(() => this.#displayed());
    this.#unreported.add(componentId);
  }

  /** Sends any input. */
  send(inputType: InputType, data: JsonObject, options: SendOptions = {}): string {
    const { source = null, surface = "main", files = [], id = newId(), edits = null } = options;
    const message: Input = {
      type: "input",
      v: 1,
      input_type: inputType,
      data,
      source_component: source,
      surface,
      id,
      edits,
    };
    if (this.#kept) this.#keep(null);
    this.#outbox.add(id, message, files.map(attachment));
    const tooLong = this.#tooLong(message);
    if (tooLong !== null) this.#refused(id, { error: tooLong, code: RESOURCE_LIMIT, id });
    this.#pump();
    return id;
  }

  /** Waits until the agent side has stored an input; returns the turn that it began or answered. */
  acknowledged(id: string): Promise<string | null> {
    return new Promise((resolve, reject) => {
      const waiter: Waiter = (turnId, error) => (error ? reject(new ArpError(error)) : resolve(turnId));
      const refusal = this.#outbox.get(id)?.error;
      if (refusal) waiter(null, refusal);
      else this.#waiters.set(id, [...(this.#waiters.get(id) ?? []), waiter]);
    });
  }

  /** Sends a refused input again, with a new id. */
  resend(id: string): string | null {
    if (this.#outbox.get(id)?.phase !== "refused") return null;
    const { message, files } = this.discard(id) as Outgoing;
    const { input_type, data, source_component: source = null, surface = "main", edits = null } = message;
    return this.send(input_type, data, { source, edits, surface, files });
  }

  /** Takes back an input that has not been sent yet, or was refused; returns it. */
  discard(id: string): Outgoing | null {
    const item = this.#outbox.get(id);
    if (item === undefined || item.phase === "accepted") return null;
    this.#uploads.get(id)?.abort();
    this.#outbox.remove(id);
    return item;
  }

  // -- frames ------------------------------------------------------------------------------------

  #receive(text: unknown): void {
    this.#take(this.#connection.receive(text));
  }

  #take(messages: readonly AgentMessage[]): void {
    const { isDraft, isUndecided } = this.#connection;
    if (isDraft && !isUndecided && !this.connected) {
      this.#connection.sessionId ??= newId();
      this.#welcome(null);
    }
    for (const message of messages) this.#handle(message);
    const { loading, screen } = this.#connection;
    if (this.#kept && !loading) this.#keep(null);
    this.store.look();
    const status = this.#status;
    if (status?.loading !== loading || status.activeTurn !== activeTurn(screen)) this.#changed();
  }

  #handle(message: AgentMessage): void {
    switch (message.type) {
      case "hello":
        if (this.#connection.isUndecided)
          this.#assuming = setTimeout(() => this.#take(this.#connection.assumeDraft()), DRAFT_AFTER_MS);
        this.#changed();
        break;
      case "session":
        this.#welcome(message);
        break;
      case "ack":
        this.#finish(message.id, message.turn_id);
        this.#outbox.accepted(message.id);
        break;
      case "input":
        if (message.id == null) break;
        this.#finish(message.id, message.turn_id);
        this.#outbox.remove(message.id);
        break;
      case "commit":
        this.#committed = Math.max(this.#committed, message.seq ?? 0);
        this.store.mark("commit");
        break;
      case "error":
        this.#wrong(message.payload, message.session_id == null);
        break;
      case "commands":
        this.#changed();
        break;
      case "ping":
        this.#driver.send({ ...message, type: "pong" });
        return;
      case "pong":
        return;
    }
    this.#calls.receive(message);
  }

  #welcome(session: SessionReady | null): void {
    const isSnapshot = session?.resume === "snapshot";
    this.#outbox.open(this.sessionId, true);
    if (isSnapshot) this.#outbox.dropAccepted();
    this.#driver.welcome();
    this.#changed();
    this.#calls.welcome(this.#connection, session);
    this.#pump();
  }

  /** An error: of an input, of our hello, of what we could not read, or for people. */
  #wrong(payload: ErrorPayload, isOutside: boolean): void {
    if (payload.id != null) {
      this.#refused(payload.id, payload);
    } else if (!this.connected) {
      const isFatal = FATAL.has(payload.code) && !payload.retryable;
      this.#driver.lose({ reason: payload.error, ...(isFatal && { refusal: payload }) });
    } else if (isOutside && this.#connection.isDesynchronised && !this.#connection.isDraft) {
      this.#driver.lose({ reason: payload.error }); // astray: the next hello brings a snapshot
    }
  }

  #refused(id: string, error: ErrorPayload): void {
    this.#outbox.change(id, { phase: "refused", error });
    this.#finish(id, null, error);
  }

  #finish(id: string, turnId: string | null = null, error?: ErrorPayload): void {
    for (const waiter of this.#waiters.get(id) ?? []) waiter(turnId, error);
    this.#waiters.delete(id);
  }

  // -- out ---------------------------------------------------------------------------------------

  #pump(): void {
    if (!this.connected) return;
    for (const { id, message, files } of this.#outbox.takeWaiting()) {
      const named: Input = { ...message, session_id: this.sessionId };
      if (files.length > 0) void this.#upload(id, named, files);
      else if (!this.#driver.send(named)) return this.#outbox.rewind();
      else for (const made of this.#connection.echo(named)) this.#handle(made);
    }
  }

  async #upload(id: string, message: Input, files: readonly Attachment[]): Promise<void> {
    const { token, fetch: fetcher } = this.#options;
    const abort = new AbortController();
    this.#uploads.set(id, abort);
    let frame: string | null = null;
    try {
      const { upload } = await import("./upload.js"); // loaded with the first file
      const { signal } = abort;
      const progress = (part: number) => this.#outbox.change(id, { progress: part });
      const url = this.address.input;
      frame = await upload({ url, token: await token(), message, files, signal, progress }, fetcher);
    } catch {
      // The network failed: tried again below.
    }
    this.#uploads.delete(id);
    if (frame !== null && !abort.signal.aborted) {
      this.#receive(frame);
      return;
    }
    this.#outbox.change(id, { phase: "waiting", progress: 0 });
    if (!abort.signal.aborted) setTimeout(() => this.#pump(), RETRY_UPLOAD_MS);
  }

  #tooLong(message: Input): string | null {
    const limit = this.capabilities?.limits?.max_message_bytes;
    const size = new TextEncoder().encode(JSON.stringify(message)).length + ROOM_BYTES;
    if (typeof limit !== "number" || size <= limit) return null;
    return `${size} bytes; the server takes ${limit}`;
  }

  /** Reports how far this screen has come, once it shows, and how. */
  #displayed(): void {
    const isNews = this.#committed > this.#acknowledged || this.#unreported.size > 0;
    if (!isNews || !this.#driver.isSocket || !this.capabilities?.features?.includes("frame-ack")) return;
    const reports = [...this.#unreported].map((id) => [id, this.#presented.get(id) as Presented] as const);
    const presented = reports.length > 0 && { presented: Object.fromEntries(reports) };
    if (!this.#driver.send({ type: "ack", v: 1, seq: this.#committed, ...presented })) return;
    this.#acknowledged = this.#committed;
    this.#unreported.clear();
  }

  /** Shows a screen in place of the session's, or no longer one. */
  #keep(screen: Screen | null): void {
    clearTimeout(this.#keeping);
    this.#kept = screen;
    if (screen !== null) this.#keeping = setTimeout(() => this.#keep(null), KEEP_MS);
    this.store.look();
    this.#changed();
  }

  // -- the state ---------------------------------------------------------------------------------

  #offline(): void {
    clearTimeout(this.#assuming);
    this.#outbox.rewind();
    this.#acknowledged = 0;
    this.#unreported = new Set(this.#presented.keys()); // the next connection knows nothing of it
    this.#calls.offline();
  }

  #newStatus(): Status {
    const { state } = this.#driver;
    const { sessionId, loading, screen, ready } = this.#connection;
    const { capabilities } = this;
    const offered = [...(capabilities?.commands ?? []), ...screen.commands];
    const commands = [...new Map(offered.map((command) => [command.name, command])).values()];
    return {
      ...state,
      sessionId,
      loading,
      workflow: ready?.workflow,
      stale: this.#kept !== null,
      older: ready?.older,
      gaps: ready?.gaps,
      capabilities,
      commands,
      activeTurn: activeTurn(screen),
    };
  }

  #changed(): void {
    this.#status = null;
    this.store?.mark("status");
  }
}

function attachment(given: File | Attachment): Attachment {
  return "part" in given ? given : { part: "file", file: given };
}
