/**
 * The client: one renderer on one session.
 *
 * It connects the parts. The driver passes frames to the connection, which updates the screen. Inputs go to the
 * outbox, which keeps them until the agent side echoes them. The store notifies its subscribers. Callbacks are
 * called for each message.
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

/** Options of an input. */
export interface SendOptions {
  /** Id of the component that the input answers. */
  source?: string | null;
  surface?: string;
  /** Files, which are sent over HTTP; `part` names the field of a form. */
  files?: readonly (File | Attachment)[];
  /** Id of the input, chosen by the caller. Two inputs with the same id count as one. */
  id?: string;
  /** Id of the turn that the input replaces. */
  edits?: string | null;
}

/** Options for switching to another session. */
export interface TurnOptions {
  /** Name of the agent of a new session; `null` for the app's first agent. Unchanged if absent. */
  workflow?: string | null | undefined;
  /** Whether the old screen stays until the other session has loaded (one second at most); otherwise it is empty. */
  keep?: boolean;
}

/** How a component is shown: natively, as its fallback, or not at all because drawing failed. */
export type Presented = NonNullable<RendererAck["presented"]>[string];

type Waiter = (turnId: string | null, error?: ErrorPayload) => void;

/** Codes of errors that a reconnect would meet again. */
const FATAL = new Set<number>([
  VERSION_MISMATCH,
  SESSION_NOT_FOUND,
  INVALID_MESSAGE,
  UNAUTHENTICATED,
  PERMISSION_DENIED,
]);
/** Time after which a server that has sent its hello, but no answer to ours, counts as a server of the draft. */
const DRAFT_AFTER_MS = 1000;
const RETRY_UPLOAD_MS = 3000;
/** Longest time that the old screen stays while another session loads. */
const KEEP_MS = 1000;
/** Reserve for the session id, which is added to an input when it is sent. */
const ROOM_BYTES = 256;

/** A renderer that draws nothing: the application draws what the store contains. */
export class ArpClient {
  /** Observable state. */
  readonly store: Store;
  /** Lists of sessions over HTTP, from the same server with the same token. */
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
  /** Screen that is shown until another session has loaded; `null` if the session's own screen is shown. */
  #kept: Screen | null = null;
  #keeping: ReturnType<typeof setTimeout> | undefined;
  #assuming: ReturnType<typeof setTimeout> | undefined;
  #committed = 0;
  #acknowledged = 0;
  /** How components are shown, by id, if that was ever different from `native`. */
  readonly #presented = new Map<string, Presented>();
  /** Ids in `#presented` that the server was not sent yet. */
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

  /** Whether there is a connection and the server has opened the session. */
  get connected(): boolean {
    return this.#driver.isWelcome;
  }

  /** Capabilities of the agent side; `null` until its hello. */
  get capabilities(): AgentCapabilities | null {
    return this.#connection.agent?.capabilities ?? null;
  }

  /** Id of the session; `null` until the server has named it. */
  get sessionId(): string | null {
    return this.#connection.sessionId;
  }

  /** The current screen; use `store` to observe changes. */
  get screen(): Screen {
    return this.#kept ?? this.#connection.screen;
  }

  // -- the connection ----------------------------------------------------------------------------

  /**
   * Connect, and reconnect from then on after each lost connection. While the client waits to reconnect, or after a
   * refusal, try immediately. Do nothing while there is a connection.
   */
  connect(): void {
    this.#stopListening ??= onWake(this.#driver);
    this.#driver.connect();
  }

  /** Close the connection. Inputs that are not sent yet are kept for the next connection. */
  disconnect(): void {
    this.#stopListening?.();
    this.#stopListening = null;
    for (const upload of this.#uploads.values()) upload.abort();
    this.#uploads.clear();
    this.#driver.disconnect();
  }

  /**
   * Switch to another session; `null` begins a new one. The screen is empty until the session has loaded, unless
   * `keep` is set. An existing connection stays open if the server supports it.
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

  // -- actions of the user -----------------------------------------------------------------------
  // Each method returns the id of the input. Without a connection the input waits; it survives a reload.

  sendText(text: string, options: SendOptions = {}): string {
    const isFile = options.files !== undefined && options.files.length > 0;
    return this.send(isFile ? "file" : "text", { text }, options);
  }

  sendAction(componentId: string, action: string, payload?: unknown, options: SendOptions = {}): string {
    const data = { action, payload } as JsonObject; // fields that are undefined are not sent
    return this.send("action", data, componentId === "" ? options : { ...options, source: componentId });
  }

  sendFormSubmit(fields: Record<string, unknown>, action?: string, options: SendOptions = {}): string {
    return this.send("form_submit", { fields, action } as JsonObject, options);
  }

  /** Answer a question, unless an answer is already in `outgoing`; see `answerOfValue` for the value. */
  answer(component: Component, value: Json, options: SendOptions = {}): string {
    return this.#answer(component, ...answerOfValue(component, value), options);
  }

  /** Decline to answer a question with `can_decline`, unless an answer is already in `outgoing`. */
  decline(component: Component, options: SendOptions = {}): string {
    return this.#answer(component, "action", { action: "decline" }, options);
  }

  /** Close a surface, popup or overlay, for every renderer. */
  closeSurface(surface: string): string {
    return this.send("action", { action: "arp.close" }, { surface });
  }

  /** Report the focus or the size of a surface to the agent. Without a connection nothing is sent, not even later. */
  tellOfSurface(surface: string, what: "focus" | "unfocus" | "resize", data: JsonObject = {}): void {
    if (!this.connected || !this.capabilities?.features?.includes("overlays")) return;
    this.#driver.send({ type: "input", v: 1, input_type: what, data, surface, session_id: this.sessionId } as Input);
  }

  /** Stop a turn, by default the running one. A queued turn is removed from the queue. */
  stop(turnId?: string): string {
    return this.#command("cancel", turnId);
  }

  /** Replace the input that began a turn. A queued turn keeps its position. */
  edit(turnId: string, text: string, options: SendOptions = {}): string {
    return this.sendText(text, { ...options, edits: turnId });
  }

  /** Ask the agent to answer the input of a turn again, as another version of the turn. */
  regenerate(turnId: string): string {
    return this.#command("regenerate", turnId);
  }

  /** Switch to another version of a turn and to the turns that followed it. */
  showVersion(turnId: string): string {
    return this.#command("branch", turnId);
  }

  /** Move a turn to the front of the queue. */
  promote(turnId: string): string {
    return this.#command("promote", turnId);
  }

  /** Resume the queue, which pauses when a turn fails. */
  goOn(): string {
    return this.#command("continue");
  }

  /**
   * Allow the tool call of a permission request.
   *
   * @param scope `once` allows this call; `session` also allows the later calls that the request describes.
   * @param asked The permission as it was shown. If the tool's input has changed since, the server refuses the answer.
   * @param updatedInput Input that is allowed instead of the shown one, if the permission is editable.
   */
  grant(
    component: Component,
    scope: "once" | "session" = "once",
    asked?: Permission,
    updatedInput?: JsonObject,
  ): string {
    return this.#decide(component, "confirm", { scope, digest: asked?.digest, updated_input: updatedInput }, asked);
  }

  /** Deny the tool call of a permission request, with a reason for the agent. */
  deny(component: Component, reason = "", asked?: Permission): string {
    return this.#decide(component, "deny", { reason, digest: asked?.digest }, asked);
  }

  #command(name: string, turn_id?: string): string {
    const data = { action: `arp.${name}`, payload: { turn_id } };
    return this.send("action", data as JsonObject); // fields that are undefined are not sent
  }

  #decide(component: Component, action: string, payload: Record<string, unknown>, asked?: Permission): string {
    const data = { action, payload } as JsonObject; // fields that are undefined are not sent
    return this.#answer(component, "action", data, asked ? { surface: asked.surface ?? "main" } : {});
  }

  #answer({ id: source }: Component, inputType: InputType, data: JsonObject, options: SendOptions): string {
    // A double click must not answer twice: the second answer would be refused.
    const pending = answerTo(this.#outbox.items, source, options.surface);
    const surface = this.#connection.screen.find(source)?.surface ?? "main";
    return pending?.id ?? this.send(inputType, data, { surface, ...options, source });
  }

  /** Record how a component is shown. The agent learns of everything that is or was not `native` (`turn.shown_as`). */
  presented(componentId: string, how: Presented): void {
    if ((this.#presented.get(componentId) ?? "native") === how) return;
    this.#presented.set(componentId, how);
    if (this.#unreported.size === 0) queueMicrotask(() => this.#displayed());
    this.#unreported.add(componentId);
  }

  /** Send an input of any type. */
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
    // The input belongs to the new session: shown on the old screen, it would look like part of the old session.
    if (this.#kept) this.#keep(null);
    this.#outbox.add(id, message, files.map(attachment));
    const tooLong = this.#tooLong(message);
    if (tooLong !== null) this.#refused(id, { error: tooLong, code: RESOURCE_LIMIT, id });
    this.#pump();
    return id;
  }

  /** Wait until the agent side has stored an input. Resolve to the id of the turn that it began or answered. */
  acknowledged(id: string): Promise<string | null> {
    return new Promise((resolve, reject) => {
      const waiter: Waiter = (turnId, error) => (error ? reject(new ArpError(error)) : resolve(turnId));
      const refusal = this.#outbox.get(id)?.error;
      if (refusal) waiter(null, refusal);
      else this.#waiters.set(id, [...(this.#waiters.get(id) ?? []), waiter]);
    });
  }

  /** Send a refused input again, with a new id. */
  resend(id: string): string | null {
    if (this.#outbox.get(id)?.phase !== "refused") return null;
    const { message, files } = this.discard(id) as Outgoing;
    const { input_type, data, source_component: source = null, surface = "main", edits = null } = message;
    return this.send(input_type, data, { source, edits, surface, files });
  }

  /** Remove an input that is not accepted yet, or was refused; return it. */
  discard(id: string): Outgoing | null {
    const item = this.#outbox.get(id);
    if (item === undefined || item.phase === "accepted") return null;
    this.#uploads.get(id)?.abort();
    this.#outbox.remove(id);
    return item;
  }

  // -- frames ------------------------------------------------------------------------------------

  #receive(text: unknown): void {
    this.#applied(this.#connection.receive(text));
  }

  /** Update everything besides the screen after messages were applied to it. */
  #applied(messages: readonly AgentMessage[]): void {
    const { isDraft, isUndecided } = this.#connection;
    // A server of the draft never sends `session`, so its first message opens the session.
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
          this.#assuming = setTimeout(() => this.#applied(this.#connection.assumeDraft()), DRAFT_AFTER_MS);
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
        this.#handleError(message.payload, message.session_id == null);
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

  /** Handle an error: of an input, of our hello, of a frame that we could not read, or of the conversation. */
  #handleError(payload: ErrorPayload, isOutside: boolean): void {
    if (payload.id != null) {
      this.#refused(payload.id, payload);
    } else if (!this.connected) {
      const isFatal = FATAL.has(payload.code) && !payload.retryable;
      this.#driver.lose({ reason: payload.error, ...(isFatal && { refusal: payload }) });
    } else if (isOutside && this.#connection.isDesynchronised && !this.#connection.isDraft) {
      // We are out of step, and nothing on this link restores our position: the next hello asks for a snapshot.
      this.#driver.lose({ reason: payload.error });
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

  // -- sending -----------------------------------------------------------------------------------

  /** Send all waiting inputs, if there is a connection. */
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
      // The network failed: the upload is tried again below.
    }
    this.#uploads.delete(id);
    if (frame !== null && !abort.signal.aborted) {
      this.#receive(frame);
      return;
    }
    this.#outbox.change(id, { phase: "waiting", progress: 0 });
    if (!abort.signal.aborted) setTimeout(() => this.#pump(), RETRY_UPLOAD_MS);
  }

  /**
   * Return an error text if an input exceeds the server's size limit. A much larger one would close the connection with
   * code 1009 at each attempt, so it must not be sent.
   */
  #tooLong(message: Input): string | null {
    const limit = this.capabilities?.limits?.max_message_bytes;
    const size = new TextEncoder().encode(JSON.stringify(message)).length + ROOM_BYTES;
    if (typeof limit !== "number" || size <= limit) return null;
    return `${size} bytes; the server takes ${limit}`;
  }

  /** Report to the agent side which commit is displayed, and how components are shown. */
  #displayed(): void {
    const isNews = this.#committed > this.#acknowledged || this.#unreported.size > 0;
    if (!isNews || !this.#driver.isSocket || !this.capabilities?.features?.includes("frame-ack")) return;
    const reports = [...this.#unreported].map((id) => [id, this.#presented.get(id) as Presented] as const);
    const presented = reports.length > 0 && { presented: Object.fromEntries(reports) };
    if (!this.#driver.send({ type: "ack", v: 1, seq: this.#committed, ...presented })) return;
    this.#acknowledged = this.#committed;
    this.#unreported.clear();
  }

  /** Show a screen instead of the session's own; `null` shows the session's own again. */
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
    this.#unreported = new Set(this.#presented.keys()); // the server forgets the reports of a closed connection
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
