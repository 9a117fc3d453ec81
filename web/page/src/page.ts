/**
 * `<arp-page>`: the page that the server shows at `/`. It has the list of chats and one chat, and it manages
 * everything that belongs to the window: address, title, theme, language, keyboard shortcuts, files.
 */

import { ArpClient, isGreeting, type Wire } from "@agent-rendering/core";
import { DRAWN } from "@agent-rendering/core/chat";
import { LOCALES, loadStrings, translator, type Translator } from "@agent-rendering/core/strings";
import {
  createContext,
  sign,
  type ArpChat,
  type ArpComposer,
  type ArpContext,
  type MenuItem,
  type SignIn,
} from "@agent-rendering/elements/chat";
import type { ArpSessions } from "@agent-rendering/elements/sessions";
import { html, LitElement, nothing, type TemplateResult } from "lit";

import type { Account } from "./account.js";
import { keepToken, sessionOf, tokenOf, tokensOf, withSession, workflowOf } from "./address.js";
import { isMissing, nameFresh, use } from "./known.js";
import type { Format } from "./saving.js";
import { soon } from "./soon.js";
import { keepSettings, readSettings, SETTINGS_KEY, type Settings, type Theme } from "./settings.js";

/** Names of the languages, each in its own language. */
const LANGUAGES: { readonly [tag: string]: string } = {
  en: "English",
  ar: "العربية",
  de: "Deutsch",
  es: "Español",
  fr: "Français",
  ja: "日本語",
  zh: "中文",
};
/** Attempts to reconnect, about four minutes. Later the page seems unattended; it reconnects when the user returns. */
const MOST_TRIES = 30;
/** Name of the server's command for the settings of a chat. */
const SETTINGS_COMMAND = "settings";
const NARROW = "(max-width: 48rem)";

/** Return the time zone if the browser has a fast way to get it; otherwise the client gets it with `Intl`. */
function timeZone(): { readonly timeZone?: string } {
  const { Temporal: time } = globalThis as { Temporal?: { readonly Now: { timeZoneId(): string } } };
  return time ? { timeZone: time.Now.timeZoneId() } : {};
}

/** The app as the chat reports it: its title, its agents, and the agent of this chat. */
interface Introduced {
  readonly title: string;
  readonly agent: Wire.Workflow | null;
  readonly agents: readonly Wire.Workflow[];
}

export class ArpPage extends LitElement {
  static override properties = {
    settings: { state: true },
    words: { state: true },
    current: { state: true },
    app: { state: true },
    listed: { state: true },
    drawer: { state: true },
    narrow: { state: true },
    account: { state: true },
    signIn: { state: true },
    adjustable: { state: true },
    missing: { state: true },
  };

  declare protected settings: Settings;
  declare protected words: Translator;
  declare protected current: string | null;
  /** Title and agents of the app. */
  declare protected app: Introduced;
  /** Whether the list of chats is requested. */
  declare protected listed: boolean;
  /** Whether the list covers the chat, on a narrow screen. */
  declare protected drawer: boolean;
  declare protected narrow: boolean;
  /** Account of the user; `null` until the server has sent it. */
  declare protected account: Account | null;
  declare protected signIn: SignIn | null;
  /** Whether the chat has settings. The agent side then lists a command for them. */
  declare protected adjustable: boolean;
  /** Whether the chat that the address names does not exist. */
  declare protected missing: boolean;
  readonly client: ArpClient;
  /** Number of changes of the address. The answer to a question about an earlier address is ignored. */
  #step = 0;
  #context: ArpContext | null = null;
  /** Whether the chosen language is loaded. Until then the document keeps the direction that it began with. */
  #hasWords = false;
  #wordsLoaded: Promise<void> = Promise.resolve();
  #entered: Promise<void> = Promise.resolve();
  #token: string | null;
  /** Token and session of the address, if the token differs from that of this tab; the user is asked about it. */
  readonly #offered: { readonly token: string; readonly session: string | null } | null;

  constructor() {
    super();
    this.settings = readSettings();
    this.words = translator("en");
    this.current = sessionOf(location.href);
    this.app = { title: "", agent: null, agents: [] };
    this.listed = this.drawer = this.adjustable = this.missing = false;
    this.account = this.signIn = null;
    const narrow = matchMedia(NARROW);
    this.narrow = narrow.matches;
    narrow.addEventListener("change", () => (this.narrow = narrow.matches));
    const { token, other } = tokensOf(tokenOf(location.href), sessionStorage);
    this.#offered = other === null ? null : { token: other, session: this.current };
    this.#token = token;
    const href = withSession(location.href, this.current);
    if (href !== location.href) history.replaceState(null, "", href);
    this.client = new ArpClient({
      url: document.baseURI.replace(/[?#].*$/, ""),
      sessionId: this.current,
      workflow: workflowOf(location.href),
      token: () => this.#token,
      components: DRAWN,
      features: ["line-pause", "overlays"],
      maxReconnectAttempts: MOST_TRIES,
      viewport: { width: innerWidth, height: innerHeight },
      theme: this.#isDark() ? "dark" : "light",
      // Given here so that `Intl` is not needed: its first use takes as long as drawing the page.
      locale: this.settings.locale ?? navigator.language,
      ...timeZone(),
    });
  }

  protected override createRenderRoot(): this {
    return this;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.#wordsLoaded = this.#loadWords();
    addEventListener("popstate", () => {
      const [session, workflow] = [sessionOf(location.href), workflowOf(location.href)];
      void this.#enter(session, () => this.#show(session, workflow, false));
    });
    addEventListener("storage", ({ key }) => {
      if (key === SETTINGS_KEY) this.#apply(readSettings());
    });
    addEventListener("keydown", this.#key);
    for (const name of ["dragover", "dragleave", "drop"] as const) {
      addEventListener(name, (event) => this.#chat.takeDrag(event, document)); // also for files dropped beside the chat
    }
    this.client.store.status.subscribe(() => {
      const { phase, commands } = this.client.store.status.get();
      this.adjustable = commands.some(({ name }) => name === SETTINGS_COMMAND);
      if (phase === "refused") void this.#loadAccount();
    });
    const { turnIds } = this.client.store;
    turnIds.subscribe(() => {
      const [first] = turnIds.get();
      if (first !== undefined && !isGreeting(this.client.store.turn(first).get())) use();
    });
    this.#entered = this.#enter(this.current, () => this.client.connect());
  }

  /** Enter the chat of the address, if it exists. */
  async #enter(sessionId: string | null, enter: () => void): Promise<void> {
    const step = ++this.#step;
    const missing = await isMissing(sessionId, this.#token);
    if (step !== this.#step) return; // the address has changed while the server was asked
    this.missing = missing;
    if (missing) this.current = sessionId;
    else enter();
  }

  /** Load the account of the user, and the way to sign in. */
  async #loadAccount(): Promise<void> {
    const { readAccount, signInOf } = await import("./account.js");
    this.account = await readAccount(this.#token);
    this.signIn = this.account && signInOf(this.account);
  }

  protected override firstUpdated(): void {
    void this.#begin();
  }

  /** Replace the static document. Text that was typed there moves into the message box, or is sent. */
  async #begin(): Promise<void> {
    const early = this.querySelector<HTMLTextAreaElement>(".page-early textarea");
    for (const part of this.querySelectorAll(".page-early")) part.remove();
    await this.#chat.updateComplete;
    this.#focus();
    performance.mark("arp-usable");
    if (early?.value) {
      await Promise.all([this.#chat.ready, this.#entered]);
      const kept = this.querySelector<ArpComposer>("arp-composer")?.text ?? "";
      if (early.dataset.sent === undefined || this.missing) this.#chat.draft(kept + early.value);
      else this.#chat.say(early.value);
    }
    void this.#askForToken();
    soon(() => {
      this.listed = true;
      void this.#loadAccount();
      soon(() => void import("@agent-rendering/elements"));
    });
  }

  /** Ask the user before another token replaces that of this tab: it may belong to another user. */
  async #askForToken(): Promise<void> {
    if (this.#offered === null) return;
    const { token, session } = this.#offered;
    const { askForToken } = await import("./dialogs.js");
    await this.#wordsLoaded;
    askForToken(this.#shownContext, () => {
      keepToken(token, sessionStorage);
      history.replaceState(null, "", withSession(location.href, session));
      location.reload();
    });
  }

  /** Focus the message box, unless that would open an on-screen keyboard. */
  #focus(): void {
    if (!matchMedia("(pointer: coarse)").matches) this.#chat.focus();
  }

  protected override updated(): void {
    const root = document.documentElement;
    if (this.#hasWords) {
      root.lang = this.words.locale;
      root.dir = this.words.direction;
    }
    if (this.settings.theme === "system") delete root.dataset.theme;
    else root.dataset.theme = this.settings.theme;
    document.title = this.#title;
  }

  get #chat(): ArpChat {
    return this.querySelector("arp-chat") as ArpChat;
  }

  get #title(): string {
    return this.app.title || "ARP";
  }

  get #list(): ArpSessions | null {
    return this.querySelector("arp-sessions");
  }

  #isDark(): boolean {
    const { theme } = this.settings;
    return theme === "dark" || (theme === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  }

  get #shownContext(): ArpContext {
    const theme = this.#isDark() ? "dark" : "light";
    if (this.#context?.t !== this.words || this.#context.theme !== theme) {
      const announce = (text: string) => this.#chat.context.announce(text);
      this.#context = createContext({ t: this.words, theme, client: this.client, announce });
    }
    return this.#context;
  }

  async #loadWords(): Promise<void> {
    const { locale } = this.settings;
    const [tag, strings] = await loadStrings(locale === null ? [...navigator.languages] : [locale]);
    this.#hasWords = true;
    this.words = translator(tag, strings);
  }

  #apply(settings: Settings): void {
    const isNewLanguage = settings.locale !== this.settings.locale;
    this.settings = settings;
    if (isNewLanguage) void this.#loadWords();
  }

  #choose(change: Partial<Settings>): void {
    this.#apply({ ...this.settings, ...change });
    keepSettings(this.settings);
  }

  // -- the open chat -----------------------------------------------------------------------------

  /**
   * Open a session and change the address.
   *
   * @param sessionId `null` begins a new session.
   * @param workflow Agent of a new session; `null` for the app's first agent.
   * @param isStep Whether the browser history gets a new entry.
   */
  #show(sessionId: string | null, workflow: string | null = null, isStep = true): void {
    this.drawer = this.missing = false;
    this.#step += 1;
    if (sessionId === this.current && sessionId !== null) return this.client.connect();
    this.current = sessionId;
    if (isStep) history.pushState(null, "", withSession(location.href, sessionId, workflow));
    this.#chat.turnTo(sessionId, workflow);
    this.client.connect();
    this.#focus();
  }

  /** Agent of a new chat: that of the open chat. `null` for the app's first agent, which the address does not name. */
  get #workflow(): string | null {
    const { agent, agents } = this.app;
    return agent === null || agent.name === agents[0]?.name ? null : agent.name;
  }

  /** Handle the choice of another agent. In an empty chat it replaces the history entry instead of adding one. */
  #chosen = ({ detail }: CustomEvent<{ workflow: string; isEmpty: boolean }>): void => {
    const href = withSession(
      location.href,
      null,
      detail.workflow === this.app.agents[0]?.name ? null : detail.workflow,
    );
    history[detail.isEmpty ? "replaceState" : "pushState"](null, "", href);
    this.current = null;
  };

  #named(sessionId: string | null): void {
    if (sessionId === null || sessionId === this.current) return;
    this.current = sessionId;
    nameFresh(sessionId, withSession(location.href, sessionId));
  }

  #new = (event?: MouseEvent): void => {
    if (event && (event.metaKey || event.ctrlKey || event.shiftKey)) return; // the browser opens another tab or window
    event?.preventDefault();
    this.#show(null, this.#workflow);
  };

  // -- files -------------------------------------------------------------------------------------

  async #save(format: Format): Promise<void> {
    const chat = this.#chat;
    await chat.loadAll();
    const { saveChat } = await import("./saving.js");
    await saveChat(format, this.#titleOfChat(), chat.turns, chat.querySelector(".arp-log") as Element, this.words);
  }

  #titleOfChat(): string {
    const link = this.#list?.querySelector("a[aria-current] .arp-session-title");
    return link?.textContent || this.#title;
  }

  async #import(): Promise<void> {
    try {
      const { importChat } = await import("./dialogs.js");
      await importChat(this.#chat.context);
    } catch {
      this.#chat.notice(this.words("importFailed"));
    }
  }

  async #print(): Promise<void> {
    await this.#chat.loadAll();
    print();
  }

  // -- keys --------------------------------------------------------------------------------------

  #key = (event: KeyboardEvent): void => {
    if (event.defaultPrevented || event.isComposing) return;
    if (event.key === "F6") {
      event.preventDefault();
      this.#nextRegion(event.shiftKey ? -1 : 1);
      return;
    }
    if (event.key === "Escape" && this.drawer) {
      this.#toggle(false);
      return;
    }
    const isWriting =
      (event.target as HTMLElement).closest(
        "input, textarea, select, [contenteditable], [role=menu], dialog, .arp-permission",
      ) !== null;
    if (isWriting || event.ctrlKey || event.metaKey || event.altKey || !this.settings.singleKeys) return;
    const actions: { [key: string]: () => void } = {
      "/": () => this.#chat.focus(),
      n: () => this.#new(),
      s: () => this.#search(),
      "?": () => void this.#keys(),
    };
    const act = actions[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  };

  async #keys(): Promise<void> {
    const { showKeys } = await import("./dialogs.js");
    showKeys(this.#chat.context, this.settings.singleKeys, (singleKeys) => this.#choose({ singleKeys }));
  }

  async #search(): Promise<void> {
    this.#toggle(true);
    await this.updateComplete;
    this.#list?.focus();
  }

  #nextRegion(step: number): void {
    const regions = [".page-side", ".page-head", ".arp-scroller", ".arp-side-body", ".arp-permission", "arp-composer"]
      .map((name) => this.querySelector<HTMLElement>(name))
      .filter((region) => region !== null && region.checkVisibility());
    const here = regions.findIndex((region) => region?.contains(document.activeElement));
    const next = regions.at((here + step + regions.length) % regions.length);
    if (!next) return;
    const first = next.matches("[tabindex]") ? next : next.querySelector<HTMLElement>("textarea, input, a, button");
    first?.focus();
  }

  #toggle(wanted = !(this.narrow ? this.drawer : this.settings.panel)): void {
    if (!this.narrow) {
      this.#choose({ panel: wanted });
      return;
    }
    this.drawer = wanted;
    void this.updateComplete.then(() => {
      this.querySelector<HTMLElement>(wanted ? ".page-side a, .page-side button" : ".page-menu")?.focus();
    });
  }

  // -- drawing -----------------------------------------------------------------------------------

  protected override render(): TemplateResult {
    const { words: t, narrow, drawer, settings, app } = this;
    const isOpen = narrow ? drawer : settings.panel;
    const context = this.#shownContext;
    return html`
      <a class="page-skip arp-button" href="#message" @click=${(event: Event) => {
        event.preventDefault();
        this.#chat.focus();
      }}>${t("skipToMessage")}</a>
      ${narrow && drawer ? html`<div class="page-veil" @click=${() => this.#toggle(false)}></div>` : nothing}
      <aside class="page-side arp" ?hidden=${!isOpen} aria-label=${t("chats")} @arp-open=${this.#opened} @arp-deleted=${this.#deleted}>
        <div class="page-side-head">
          <span class="page-brand"><img src="_static/icon.svg" alt="" width="24" height="24" /><span dir="auto">${this.#title}</span></span>
          <button type="button" class="arp-icon-button" aria-label=${t("closePanel")} title=${t("closePanel")} @click=${() => this.#toggle(false)}>${sign("panel")}</button>
        </div>
        <a class="page-new" href="./" @click=${this.#new}>${sign("compose")}<span>${t("newChat")}</span></a>
        <arp-sessions .client=${this.listed ? this.client : null} .context=${context} .current=${this.current} .agents=${app.agents}></arp-sessions>
      </aside>
      <div class="page-main" ?inert=${narrow && drawer}>
        <header class="page-head arp">
          ${
            isOpen && !narrow
              ? nothing
              : html`<button type="button" class="arp-icon-button page-menu" aria-expanded=${isOpen ? "true" : "false"} aria-label=${t("openPanel")} title=${t("openPanel")} @click=${() => this.#toggle(true)}>${sign("panel")}</button>
                <a class="arp-icon-button" href="./" aria-label=${t("newChat")} title=${t("newChat")} @click=${this.#new}>${sign("compose")}</a>`
          }
          <h1 dir="auto">${this.#title}</h1>
          ${app.agents.length < 2 ? nothing : html`<arp-menu class="page-agents" .label=${`${t("agent")}: ${this.#agentTitle}`} .sign=${"forward"} .text=${this.#agentTitle} .items=${this.#agents()}></arp-menu>`}
          <arp-link-state .client=${this.client} .context=${context}></arp-link-state>
          ${
            this.adjustable
              ? html`<button type="button" class="arp-icon-button page-adjust" aria-haspopup="dialog" aria-label=${t("chatSettings")} title=${t("chatSettings")} @click=${() => void this.#adjust()}>${sign("adjust")}<span>${t("chatSettings")}</span></button>`
              : nothing
          }
          <arp-menu .label=${t("settings")} .sign=${"settings"} .items=${this.#menu()}></arp-menu>
        </header>
        <main id="message">
          ${
            this.missing
              ? html`<section class="page-missing arp" role="alert"><p>${t("noSuchChat")}</p><a class="arp-button" href="./" @click=${this.#new}>${t("newChat")}</a></section>`
              : nothing
          }
          <arp-chat ?hidden=${this.missing}
            .client=${this.client}
            .theme=${settings.theme}
            .locale=${t.locale}
            picture-frame="_picture"
            .signIn=${this.signIn}
            feedback
            @arp-token=${this.#tokenEntered}
            @arp-session=${(event: CustomEvent<{ sessionId: string | null }>) => this.#named(event.detail.sessionId)}
            .workflow=${workflowOf(location.href)}
            @arp-workflow=${this.#chosen}
            @arp-introduced=${(event: CustomEvent<Introduced>) => (this.app = event.detail)}
          ></arp-chat>
        </main>
      </div>
    `;
  }

  /** Use a token that the user has entered in the chat. */
  #tokenEntered = ({ detail }: CustomEvent<{ token: string }>): void => {
    this.#token = detail.token;
    keepToken(detail.token, sessionStorage);
    this.#chat.addEventListener("arp-connect", this.#letIn, { once: true });
    this.client.connect();
    this.#focus();
  };

  /** Repeat the requests that the server refused without a token. */
  #letIn = (): void => {
    this.#list?.refresh();
    void this.#loadAccount();
  };

  #opened = (event: Event): void => this.#show((event as CustomEvent<{ sessionId: string }>).detail.sessionId);

  #deleted = (event: Event): void => {
    if ((event as CustomEvent<{ sessionId: string }>).detail.sessionId === this.current)
      this.#show(null, this.#workflow);
  };

  get #agentTitle(): string {
    return this.app.agent?.title ?? this.words("chooseAgent");
  }

  #agents(): MenuItem[] {
    const { agent, agents } = this.app;
    return agents.map(({ name, title }, at) => ({
      label: title,
      checked: name === agent?.name,
      ...(at === 0 && { group: this.words("chooseAgent") }),
      run: () => {
        this.#chat.choose(name);
        this.#focus();
      },
    }));
  }

  /** Return the menu item for signing out, if the user has signed in. */
  #signOutItems(): MenuItem[] {
    const { account } = this;
    if (!account?.user || account.logout_url === null) return [];
    const leave = async () => (await import("./account.js")).signOut(account);
    return [
      { label: this.words("signOut"), group: account.user.display_name || account.user.name, run: () => void leave() },
    ];
  }

  /** Open the settings of the chat. If the app has none, the command `settings` is its own, so send it. */
  async #adjust(): Promise<void> {
    try {
      const { showSettings } = await import("./session_settings.js");
      if (!(await showSettings(this.client, this.#shownContext))) this.#chat.say(`/${SETTINGS_COMMAND}`);
    } catch {
      this.#chat.notice(this.words("settingsFailed"));
    }
  }

  #menu(): MenuItem[] {
    const { words: t, settings } = this;
    const theme = (theme: Theme, name: "sun" | "moon" | "screen", label: string, group?: string): MenuItem => ({
      label,
      icon: name,
      checked: settings.theme === theme,
      ...(group !== undefined && { group }),
      run: () => this.#choose({ theme }),
    });
    const language = (tag: string, at: number): MenuItem => ({
      label: LANGUAGES[tag] ?? tag,
      checked: t.locale.split("-")[0] === tag,
      ...(at === 0 && { group: t("language") }),
      run: () => this.#choose({ locale: tag }),
    });
    return [
      ...this.#signOutItems(),
      { label: "Markdown", icon: "export", group: t("exportChat"), run: () => void this.#save("md") },
      { label: "JSON", icon: "export", run: () => void this.#save("json") },
      { label: "HTML", icon: "export", run: () => void this.#save("html") },
      { label: t("importChat"), icon: "import", group: " ", run: () => void this.#import() },
      { label: t("print"), icon: "print", run: () => void this.#print() },
      { label: t("shortcuts"), icon: "keyboard", run: () => void this.#keys() },
      theme("light", "sun", t("light"), t("theme")),
      theme("dark", "moon", t("dark")),
      theme("system", "screen", t("system")),
      ...["en", ...Object.keys(LOCALES)].map(language),
    ];
  }
}
