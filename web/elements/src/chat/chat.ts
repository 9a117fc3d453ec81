/**
 * `<arp-chat>`: a whole conversation.
 *
 * Theory of operation. The chat is a frame of four regions: the conversation, the dock with the message box, the
 * surfaces beside the conversation, and the live regions for screen readers. The state of the conversation is in the
 * client's cells. Language and colours, agents, and notices have a controller each. Rare changes (new turns, the
 * connection, the session) redraw the frame. A growing turn redraws only its own message, through a cell that is bound
 * to its place in the template.
 *
 * The element connects when it enters a document and disconnects when it leaves. A move within the document does
 * neither: `disconnectedCallback` waits for a microtask and looks whether the element is in the document again.
 *
 * A change of the session has two steps. First the client reports the new session, while the screen still shows the old
 * one (`#sessionChanged`). When the screen is that of the new session, `#begin` starts over. A session that gets its id
 * is the same conversation and keeps its elements and its draft.
 */

import {
  ArpClient,
  offered,
  type ComponentRegistry,
  type ErrorPayload,
  type Status,
  type Storage,
  type TurnState,
} from "@agent-rendering/core";
import { DRAWN } from "@agent-rendering/core/chat";
import { HistoryPages } from "@agent-rendering/core/history";
import { TurnEvents } from "@agent-rendering/core/timeline";
import type { Strings } from "@agent-rendering/core/strings";
import { html, nothing, type PropertyValues, type TemplateResult } from "lit";

import {
  componentsOf,
  createContext,
  showsRecording,
  type ArpContext,
  type ComponentFactory,
} from "../base/context.js";
import { ArpElement, define, emit } from "../base/element.js";
import { Agents } from "./agents.js";
import { Appearance } from "./appearance.js";
import { Announcer } from "./status/announcer.js";
import { asksNow, isAwaited, waitsForAnswer } from "./status/awaited.js";
import { LastInput } from "./timeline/last_input.js";
import type { SignIn } from "./status/banner.js";
import type { ArpComposer, ComposerHost } from "./composer/composer.js";
import "./composer/composer.js";
import type { Command } from "./composer/command_list.js";
import { Drafts, browserStorage } from "./composer/drafts.js";
import { Follow } from "./timeline/follow.js";
import { icon } from "./icons.js";
import { keepPlace, toEnd } from "./timeline/keep_place.js";
import { actOnKey, CHAT_KEYS, type ChatKeys, type KeyActions } from "./keys.js";
import type { MessageActions } from "./message/message.js";
import { jumpButton, Notices } from "./status/notices.js";
import { endLine, openFiles } from "./message/outcome.js";
import { Recent } from "./timeline/recent.js";
import { adoptChatStyles } from "./styles.js";
import type { FeedbackSource } from "./message/rating.js";
import { serverFeedback } from "./message/server_feedback.js";
import { popups, sidePanel } from "./surfaces/surfaces.js";
import { isUnused, loadMessages, timeline } from "./timeline/timeline.js";
import { lastInput, NO_ACTIONS, turnActions } from "./message/turn_actions.js";
import { walk } from "./timeline/walk.js";
import { introduced, welcome, type Welcome } from "./status/welcome.js";

export class ArpChat extends ArpElement {
  static override properties = {
    url: { type: String },
    session: { type: String },
    workflow: { type: String },
    token: { attribute: false },
    client: { attribute: false },
    theme: { type: String },
    accent: { type: String },
    heading: { type: String },
    description: { type: String },
    logo: { type: String },
    suggestions: { attribute: false },
    components: { attribute: false },
    locale: { type: String },
    strings: { attribute: false },
    placeholder: { type: String },
    pictureFrame: { type: String, attribute: "picture-frame" },
    avatar: { type: String },
    keys: { attribute: false },
    signIn: { attribute: false },
    feedback: { type: Boolean },
    showActivity: { attribute: "show-activity", converter: (value: string | null) => value !== "false" },
    missed: { state: true },
    dropping: { state: true },
    isFilling: { state: true },
  };

  declare url: string | undefined;
  declare session: string | null | undefined;
  /** Name of the agent of a new chat, if the app has several; default: the first one. */
  declare workflow: string | null | undefined;
  declare token: string | null | undefined | (() => string | null | Promise<string | null>);
  declare client: ArpClient | null | undefined;
  declare theme: "light" | "dark" | "system" | undefined;
  declare accent: string | undefined;
  declare heading: string | undefined;
  declare description: string | undefined;
  /** Address of a picture of this page's own server, or a short text. */
  declare logo: string | undefined;
  declare suggestions: readonly string[] | undefined;
  declare components: ComponentRegistry<ComponentFactory> | Record<string, ComponentFactory> | undefined;
  declare locale: string | undefined;
  declare strings: Partial<Strings> | undefined;
  declare placeholder: string | undefined;
  /** Address of the document that shows a picture of another host in a frame; see `ArpContext`. */
  declare pictureFrame: string | undefined;
  /** Text and link for readers whom the server requires to sign in. */
  declare signIn: SignIn | null | undefined;
  /** Ratings of answers: `true` keeps them on the chat's server, a source keeps them elsewhere; default: none. */
  declare feedback: FeedbackSource | boolean | null | undefined;
  /** Picture beside the agent's messages: an address on this page's own server, or a short text. */
  declare avatar: string | undefined;
  /** Keys that replace those of `CHAT_KEYS`. */
  declare keys: Partial<ChatKeys> | undefined;
  /** Whether tool calls and thinking show; default: `true`. */
  declare showActivity: boolean | undefined;
  /** Storage of drafts and of the side panel's width over a reload; `null` stores none. */
  storage: Storage | null = browserStorage();

  /** Number of turns that began while the reader was further up; `null` while the newest turn is in view. */
  declare protected missed: number | null;
  declare protected dropping: boolean;
  /** Whether the focus is in a field of the conversation. The jump button is then hidden, because it could cover it. */
  declare protected isFilling: boolean;

  #active: ArpClient | null = null;
  #isOwn = false;
  /** Removes the listeners; `null` while the chat is in no document. */
  #leaving: AbortController | null = null;
  /** Functions that end the subscriptions to the client in use. */
  #stops: (() => void)[] = [];
  #context: ArpContext | null = null;
  #follow: Follow | null = null;
  #drafts = new Drafts(null, "");
  #shownSession: string | null = null;
  #restored: Promise<void> = Promise.resolve();
  #actions: MessageActions = {};
  /** Number of the conversation. Each conversation gets new elements, so open folds and edits are not carried over. */
  #number = 0;
  /** Whether the client has switched to another session and the screen still shows the previous one. */
  #isTurning = false;
  /** Whether the new session is another conversation, not the same one with its new id. */
  #isOther = false;
  readonly #turnEvents = new TurnEvents((turn) => this.#turned(turn));
  readonly #lastInput = new LastInput();
  readonly #appearance = new Appearance(this, () => this.#appearanceChanged());
  readonly #announcer = new Announcer(this.#appearance.words);
  readonly #agents = new Agents(this);
  readonly #notices = new Notices(this, this.#announcer);
  readonly #older = new HistoryPages(() => this.requestUpdate());
  readonly #recent = new Recent(() => void this.#drawMore());

  constructor() {
    super();
    this.missed = null;
    this.dropping = this.isFilling = false;
    this.showActivity = true;
    this.#announcer.isAsking = () =>
      this.#active !== null && (this.#active.store.permissions.get().length > 0 || isAwaited(this.#active));
  }

  // -- for the host ------------------------------------------------------------------------------

  /** The client in use: the host's, or the client of `url`. */
  get activeClient(): ArpClient | null {
    return this.#active;
  }

  /** The context of components in this chat. */
  get context(): ArpContext {
    return (this.#context ??= this.#newContext());
  }

  /** All loaded turns, oldest first. */
  get turns(): readonly TurnState[] {
    const store = this.#active?.store;
    return this.#older
      .among(store?.turnIds.get() ?? [], (id) => store?.turn(id).get())
      .filter((turn) => turn !== undefined);
  }

  override focus(): void {
    this.#composer?.focus();
  }

  /**
   * Open another session; `null` begins a new one. `workflow` is the agent of a new session: `null` means the first of
   * the app, absent means the same as before. The connection stays. The old conversation stays visible until the other
   * one has loaded, for a second at most.
   */
  turnTo(session: string | null, workflow?: string | null): void {
    if (workflow !== undefined) this.#agents.chosen = workflow;
    this.#active?.setSessionId(session, { workflow, keep: session !== null });
  }

  /** Begin a new chat with an agent. If the current chat is empty, its draft moves to the new one. */
  choose(workflow: string): void {
    const isEmpty = isUnused(this.#active as ArpClient);
    const text = this.#composer?.text ?? "";
    if (isEmpty && text !== "") {
      // The new chat has no id yet: its draft is stored under `null`, and follows when it gets an id.
      this.#drafts.write(this.#shownSession, "");
      this.#drafts.write(null, text);
    }
    emit(this, "arp-workflow", { workflow, isEmpty });
    this.turnTo(null, workflow);
  }

  /** Send a text as if the reader had typed it. */
  say(text: string, files: readonly File[] = []): void {
    const event = new CustomEvent("arp-send", {
      detail: { text, files },
      bubbles: true,
      composed: true,
      cancelable: true,
    });
    if (!this.dispatchEvent(event)) return;
    const id = this.#active?.sendText(text, { files });
    this.#follow?.jump();
    if (id !== undefined) this.#asks(id);
  }

  /** Stop the running turn. */
  stop(): void {
    if (this.#canStop) this.#active?.stop();
  }

  /** Whether a turn runs that the server can stop. */
  get #canStop(): boolean {
    const client = this.#active;
    return client !== null && client.store.status.get().activeTurn !== null && offered(client.capabilities).turns;
  }

  /** Put a text into the message box. */
  draft(text: string): void {
    if (this.#composer === null) return;
    this.#composer.text = text;
    this.#composer.focus();
  }

  /** Show a line above the message box until the reader closes it. */
  notice(text: string): void {
    this.#notices.add({ error: text, code: 0 });
  }

  /** Scroll to the newest message, and follow new content. */
  jump(): void {
    this.#follow?.jump();
  }

  /** Load and draw all older turns, to print or save them. */
  async loadAll(): Promise<void> {
    const client = this.#active;
    if (client !== null) {
      await this.#drawMore(Infinity);
      await this.#older.all(client);
    }
    await this.updateComplete;
  }

  /** Resolves when the message box exists, with its draft. */
  get ready(): Promise<void> {
    return this.#restored;
  }

  // -- life cycle --------------------------------------------------------------------------------

  override connectedCallback(): void {
    super.connectedCallback();
    adoptChatStyles(this.getRootNode());
    this.classList.add("arp-chat");
    if (this.#leaving !== null) return; // a move within the document: the connection and the listeners continue
    const { signal } = (this.#leaving = new AbortController());
    this.addEventListener("keydown", this.#key, { signal });
    for (const name of DRAGS) this.addEventListener(name, this.#drag, { signal });
    this.#appearance.watchTheme(signal);
    void this.#appearance.loadWords();
    if (!this.hasUpdated) return;
    this.#watchScroll();
    this.#open();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    queueMicrotask(() => {
      // A move is reported as leaving and entering. Disconnecting at once would lose the connection at each move.
      if (!this.isConnected) this.#unsubscribe();
    });
  }

  protected override willUpdate(changed: PropertyValues): void {
    if (["theme", "components", "pictureFrame"].some((name) => changed.has(name))) this.#context = null;
    const isNew = ["url", "token", "client"].some((name) => changed.has(name));
    if (!this.isConnected) return; // connecting now would open a connection that nothing closes
    if (isNew || this.#active === null) this.#open();
    else if (changed.has("feedback")) this.#takeFeedback(this.#active);
    else if (changed.has("session") && this.session !== undefined && this.session !== this.#active.sessionId) {
      this.turnTo(this.session, this.workflow);
    }
    if ((changed.has("locale") || changed.has("strings")) && this.hasUpdated) void this.#appearance.loadWords();
  }

  protected override firstUpdated(): void {
    const at = (name: string) => this.querySelector(name) as HTMLElement;
    this.#announcer.attach(at(".arp-status"), at(".arp-urgent"), at(".arp-spoken"));
    (this.#composer as ArpComposer).host = this.#host;
    this.#watchScroll();
    this.#restored = this.#restoreDraft();
  }

  protected override updated(): void {
    this.#appearance.apply();
    this.#lookForLastInput();
  }

  /** Close the previous client, and open the one that the properties describe. */
  #open(): void {
    this.#close();
    this.#isOwn = !this.client;
    const client = this.client ?? this.#newClient();
    if (client === null) return;
    this.#active = client;
    this.#actions = turnActions(
      client,
      (error) => this.#notices.add(error),
      (id) => this.#asks(id),
    );
    this.#takeFeedback(client);
    this.#context = null;
    this.#drafts = new Drafts(this.storage, client.address.base);
    this.#shownSession = client.sessionId;
    const { store } = client;
    const watchCell = (cell: { subscribe(listener: () => void): () => void }, listener: () => void) =>
      this.#stops.push(cell.subscribe(listener));
    watchCell(store.turnIds, () => this.#turnsChanged());
    for (const cell of [store.outgoing, store.surfaceNames, store.popupNames])
      watchCell(cell, () => this.requestUpdate());
    watchCell(store.errors, () => this.#notices.update(client));
    watchCell(store.status, () => this.#statusChanged());
    watchCell(store.permissions, () => this.#permissionsChanged());
    this.#stops.push(this.#turnEvents.observe(client));
    if (client.sessionId !== null) void loadMessages();
    this.#agents.chosen = this.workflow;
    if (this.#isOwn) client.connect();
    this.#permissionsChanged();
    this.#statusChanged();
  }

  #takeFeedback(client: ArpClient): void {
    const { feedback, ...actions } = this.#actions;
    const source = this.feedback === true ? serverFeedback(client) : this.feedback;
    this.#actions = source ? { ...actions, feedback: source } : actions;
  }

  #newClient(): ArpClient | null {
    if (this.url === undefined) return null;
    const { session, workflow, token, locale } = this;
    const own = Object.fromEntries(
      this.#registry()
        ?.list()
        .map((type) => [type, 1]) ?? [],
    );
    return new ArpClient({
      url: this.url === "" ? document.baseURI.replace(/[?#].*$/, "") : this.url,
      sessionId: session ?? null,
      workflow: workflow ?? null,
      token: token ?? null,
      components: { ...own, ...DRAWN },
      features: ["line-pause", "overlays"],
      theme: this.#appearance.theme,
      viewport: { width: innerWidth, height: innerHeight },
      ...(locale !== undefined && { locale }),
    });
  }

  #close(): void {
    for (const stop of this.#stops.splice(0)) stop();
    if (this.#isOwn) this.#active?.disconnect();
    this.#active = null;
    this.#turnEvents.clear();
    this.#announcer.clear();
    this.#older.clear();
    this.#recent.clear();
    this.#forgetLastInput();
    this.#agents.clear();
    this.#notices.clear();
  }

  #unsubscribe(): void {
    this.#close();
    this.#leaving?.abort();
    this.#leaving = null;
    this.#follow?.stop();
    this.#follow = null;
  }

  #registry(): ComponentRegistry<ComponentFactory> | null {
    return this.components ? componentsOf(this.components) : null;
  }

  #newContext(): ArpContext {
    return createContext({
      client: this.#active,
      t: this.#appearance.words,
      theme: this.#appearance.theme,
      registry: this.#registry(),
      pictureFrame: this.pictureFrame ?? null,
      answer: (component, value, files = []) => {
        emit(this, "arp-action", { component, name: "answer", payload: value });
        const id = this.#active?.answer(component, value, { files });
        // No turn waits for this answer, so it begins a new one. An example is a choice below a finished answer.
        if (id !== undefined && this.#active?.store.status.get().activeTurn === null) this.#asks(id);
        return id;
      },
      decline: (component) => {
        emit(this, "arp-action", { component, name: "decline", payload: null });
        return this.#active?.decline(component);
      },
      action: (component, name, payload) => void this.#active?.sendAction(component.id, name, payload),
      announce: (text) => this.#announcer.say(text),
    });
  }

  /** Draw everything again, in the new words and colours. */
  #appearanceChanged(): void {
    this.#context = null;
    this.#announcer.t = this.#appearance.words;
    this.requestUpdate();
  }

  // -- changes of the client --------------------------------------------------------------------

  #statusChanged(): void {
    const client = this.#active as ArpClient;
    const status = client.store.status.get();
    const { phase, sessionId, capabilities, activeTurn, reason } = status;
    if (sessionId !== this.#shownSession) this.#sessionChanged(status);
    // While the screen is stale it shows the old conversation, whose elements must stay until the new one has loaded.
    if (this.#isTurning && !status.stale) this.#begin(client, status);
    this.#agents.update(client);
    const news = this.#announcer.connection(phase);
    this.classList.toggle("arp-blind", this.#announcer.isBlind);
    if (news === "online") {
      emit(this, "arp-connect", { sessionId, capabilities });
      void openFiles(client);
    } else if (news === "lost") emit(this, "arp-disconnect", { reason });
    if (activeTurn === null) this.#announcer.rest();
    this.requestUpdate();
  }

  #sessionChanged({ sessionId, loading }: Status): void {
    const before = this.#shownSession;
    this.#shownSession = sessionId;
    this.#announcer.clear();
    this.#isTurning = true;
    if (before === null && sessionId !== null && !loading)
      this.#drafts.name(sessionId); // the same conversation has got its id
    else this.#isOther = true;
    void this.#restoreDraft();
    emit(this, "arp-session", { sessionId });
  }

  /** Start over with the new session, which the screen shows now. */
  #begin(client: ArpClient, status: Status): void {
    this.#isTurning = false;
    if (this.#isOther) {
      this.#number += 1;
      this.#forgetLastInput();
    }
    this.#isOther = false;
    this.#turnEvents.clear();
    this.#older.clear();
    this.#older.check(client.store.turnIds.get(), status);
    this.#recent.clear();
  }

  /** Load the element of permissions with the first one. */
  #permissionsChanged(): void {
    this.requestUpdate(); // the placeholder of the message box says that an answer is awaited
    if (this.#active?.store.permissions.get().length)
      void import("./permissions/permissions.js").catch(() => undefined); // tried again with the next change
  }

  #turnsChanged(): void {
    const { turnIds, status } = (this.#active as ArpClient).store;
    this.#older.check(turnIds.get(), status.get());
    if (this.missed !== null) this.missed += 1;
    this.requestUpdate();
  }

  #turned(turn: TurnState): void {
    const { t } = this.context;
    const { id, status, errors } = turn;
    this.requestUpdate(); // `LastInput` and the jump button depend on the status of turns
    if (status === "running") this.#announcer.working();
    if (status === "waiting") {
      this.#announcer.rest();
      if (waitsForAnswer(turn, this.#active as ArpClient)) this.#announcer.say(t("yourTurn"));
    } else if (status === "completed" || status === "failed" || status === "cancelled") {
      void this.#read(turn, endLine(turn, this.#active as ArpClient, t));
      emit(this, "arp-done", { turnId: id, status });
      const error = errors.at(-1);
      if (status === "failed" && error) emit(this, "arp-error", { error: error.error, payload: error, turnId: id });
    }
  }

  /** Have screen readers read an answer, in the words that are displayed. */
  async #read(turn: TurnState, line: string): Promise<void> {
    const { drawnText } = await import("./message/drawn_text.js");
    const lines = await drawnText(this, turn);
    this.#announcer.finish(line, turn.status === "completed" ? lines : []);
  }

  // -- the message box ---------------------------------------------------------------------------

  get #composer(): ArpComposer | null {
    return this.querySelector("arp-composer");
  }

  readonly #reveal = ({ detail }: CustomEvent<HTMLElement>): void => this.#follow?.show(detail);

  readonly #settled = (): void => this.focus();

  readonly #refused = ({ detail }: CustomEvent<ErrorPayload>): void => this.#notices.add(detail);

  /** Use a token that the reader entered. A host with a client of its own gives it the token itself. */
  readonly #entered = ({ detail }: CustomEvent<{ token: string }>): void => {
    if (this.#isOwn) this.token = detail.token;
  };

  readonly #host: ComposerHost = {
    send: (text, files) => this.say(text, files),
    stop: () => this.stop(),
    recall: () => (this.#active ? lastInput(this.#active) : ""),
    drafted: (text) => this.#drafts.write(this.#shownSession, text),
  };

  async #restoreDraft(): Promise<void> {
    const composer = this.#composer;
    await composer?.updateComplete; // before its first update it has no text field
    if (composer) composer.text = this.#drafts.read(this.#shownSession);
  }

  #back = (text: string, files: readonly File[]): void => {
    this.draft(text);
    this.#composer?.addFiles(files);
  };

  // -- keys, scrolling, dropping -----------------------------------------------------------------

  get #keys(): ChatKeys {
    return { ...CHAT_KEYS, ...this.keys };
  }

  readonly #keyActions: KeyActions = {
    stop: () => {
      if (!this.#canStop) return false;
      this.stop();
      this.focus();
      return true;
    },
    previous: () => this.#walk(-1),
    next: () => this.#walk(1),
    newest: () => {
      this.jump();
      return false; // the browser's own action for the key does no harm
    },
  };

  #walk(step: -1 | 1): boolean {
    if (!walk(this, step)) this.focus();
    return true;
  }

  readonly #key = (event: KeyboardEvent): void => actOnKey(event, this.#keys, this.#keyActions);

  #watchScroll(): void {
    const scroller = this.#scroller;
    const column = this.querySelector<HTMLElement>(".arp-column") as HTMLElement;
    this.#follow = new Follow(scroller, column, (following) => (this.missed = following ? null : 0));
    const look = () => {
      if (!this.#follow?.following && scroller.scrollTop < 400) void this.#loadOlder();
    };
    scroller.addEventListener("scroll", look, { passive: true, signal: this.#leaving?.signal as AbortSignal });
  }

  readonly #focusMoved = ({ type, target }: FocusEvent): void => {
    this.isFilling = type === "focusin" && (target as Element).matches("input, textarea, select");
  };

  /** Draw more of the older turns, and keep what the reader reads in place. */
  async #drawMore(count?: number): Promise<void> {
    if (this.#active === null || !this.#recent.isPartial) return;
    // While the view follows the end, `Follow` sets its position; restoring another one would scroll away from the end.
    const before = this.#follow?.following === false ? toEnd(this.#scroller) : null;
    this.#recent.step(this.#active.store.turnIds.get(), count);
    this.requestUpdate();
    await keepPlace(this, this.#scroller, before);
  }

  async #loadOlder(gap = this.#older.top): Promise<void> {
    const client = this.#active;
    if (client === null || !gap?.wanted) return;
    await this.#drawMore(Infinity); // otherwise older turns would appear above a gap of turns that are not drawn yet
    let before: number | null = null;
    await gap.load(client, undefined, () => (before = toEnd(this.#scroller)));
    await keepPlace(this, this.#scroller, before);
  }

  /** Bring a sent input to the top of the view if it begins a turn. */
  #asks(id: string): void {
    // Report a pending switch of sessions now. At the next frame it would clear this input.
    if (this.#isTurning) this.#active?.store.flush();
    void this.#lastInput.sent(this.#active as ArpClient, id, () => this.#lookForLastInput());
  }

  #lookForLastInput(): void {
    if (this.#active && this.#follow) this.#lastInput.look(this.#active, this, this.#follow);
  }

  /** Forget the last input, so that another conversation is shown at its end. */
  #forgetLastInput(): void {
    this.#lastInput.clear();
    this.#follow?.ask(null);
  }

  get #scroller(): HTMLElement {
    return this.querySelector<HTMLElement>(".arp-scroller") as HTMLElement;
  }

  #drag = (event: DragEvent): void => this.takeDrag(event);

  /** Handle files that are dragged over the chat and dropped; `within` may be a page around it. */
  takeDrag(event: DragEvent, within: Node = this): void {
    const isForField = (event.target as HTMLElement).matches?.("input[type=file]"); // it handles its own files
    if (event.defaultPrevented || isForField || !event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault(); // otherwise the browser would leave the page and open the file
    const isTaken = offered(this.#active?.capabilities).files;
    this.dropping =
      isTaken &&
      (event.type === "dragover" ||
        (event.type === "dragleave" && within.contains(event.relatedTarget as Node | null)));
    if (event.type === "drop") this.#composer?.addFiles([...event.dataTransfer.files]);
  }

  // -- drawing -----------------------------------------------------------------------------------

  protected override render(): TemplateResult {
    const client = this.#active;
    const { context } = this;
    return html`${this.#conversation(client)}${this.#dock(client)}
      ${sidePanel(client, context, this.storage, this.#settled)}${popups(client, context, this.#settled, this.#reveal)}${this.#liveRegions()}`;
  }

  /** Scrolling region of the turns, with the hint for files that are dragged over it. */
  #conversation(client: ArpClient | null): TemplateResult {
    const { t } = this.context;
    return html`<div class="arp-body">
      <div class="arp-scroller" tabindex="0" role="region" aria-label=${t("conversation")} @focusin=${this.#focusMoved} @focusout=${this.#focusMoved}>
        <div class="arp-column" ?inert=${client?.store.status.get().stale}>${client === null ? nothing : this.#timeline(client)}</div>
      </div>
      ${this.dropping ? html`<div class="arp-drop" aria-hidden="true"><p>${icon("attach")} ${t("dropFiles")}</p></div>` : nothing}
    </div>`;
  }

  /** Region of the message box, with permission requests, notices and the connection above it. */
  #dock(client: ArpClient | null): TemplateResult {
    const { context } = this;
    const status = client?.store.status.get() ?? null;
    const { files, turns } = offered(status?.capabilities);
    const limit = status?.capabilities?.limits?.max_upload_bytes;
    return html`<div class="arp-dock">
      <div class="arp-dock-column">
        ${jumpButton(this.isFilling ? null : this.missed, client !== null && isAwaited(client), context, () => {
          this.jump();
          this.focus();
        })}
        <arp-permissions .client=${client} .context=${context} @arp-settled=${this.#settled} @arp-refused=${this.#refused}></arp-permissions>
        ${this.#notices.draw(context)}
        <arp-banner .status=${status} .client=${client} .context=${context} .signIn=${this.signIn ?? null} @arp-token=${this.#entered}></arp-banner>
        <arp-composer
          .context=${context}
          .recording=${showsRecording(client)}
          .commands=${status?.commands ?? NO_COMMANDS}
          .placeholder=${client !== null && asksNow(client) ? context.t("answerAbove") : (this.placeholder ?? "")}
          .running=${turns && status !== null && status.activeTurn !== null}
          .stopKey=${this.#keys.stop}
          .canAttach=${files}
          .maxBytes=${typeof limit === "number" ? limit : 25 << 20}
        ></arp-composer>
      </div>
    </div>`;
  }

  /** Region of the announcements for screen readers. */
  #liveRegions(): TemplateResult {
    return html`<p class="arp-hidden arp-status" role="status"></p>
      <p class="arp-hidden arp-urgent" role="alert"></p>
      <div class="arp-hidden arp-spoken" role="log" aria-live="polite" aria-label=${this.context.t("agent")}></div>`;
  }

  #timeline(client: ArpClient): TemplateResult {
    const { context, avatar = "", showActivity = true } = this;
    return timeline({
      client,
      context,
      avatar,
      showActivity,
      number: this.#number,
      older: this.#older,
      recent: this.#recent,
      actions: showsRecording(client) || !offered(client.capabilities).turns ? NO_ACTIONS : this.#actions,
      welcome: (isGreeted) => this.#welcome(isGreeted),
      loadOlder: (gap) => void this.#loadOlder(gap),
      back: this.#back,
    });
  }

  /** Return the welcome; `isGreeted` lays it out around a greeting of the app. */
  #welcome(isGreeted: boolean): Welcome {
    const { context } = this;
    const say = (text: string) => this.say(text);
    return welcome(introduced(this, this.#agents.introduction), context, say, this.#agents.draw(context.t), isGreeted);
  }
}

const DRAGS = ["dragover", "dragleave", "drop"] as const;
const NO_COMMANDS: readonly Command[] = [];

define("arp-chat", ArpChat);
