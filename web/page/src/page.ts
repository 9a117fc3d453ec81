/**
 * `<arp-page>`: what the server shows at `/`: the list of chats, one chat, and what belongs to the
 * window: its address and title, theme, language, keys, files.
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

/** The languages by their own names. */
const LANGUAGES: { readonly [tag: string]: string } = {
  en: "English",
  ar: "العربية",
  de: "Deutsch",
  es: "Español",
  fr: "Français",
  ja: "日本語",
  zh: "中文",
};
/** Some four minutes; then nobody seems to look, and who comes back is connected at once. */
const MOST_TRIES = 30;
/** What the server calls the command that asks for the settings of a chat. */
const SETTINGS_COMMAND = "settings";
const NARROW = "(max-width: 48rem)";

/** The reader's time zone where the browser says it without further ado; else the client finds it out. */
function timeZone(): { readonly timeZone?: string } {
  const { Temporal: time } = globalThis as { Temporal?: { readonly Now: { timeZoneId(): string } } };
  return time ? { timeZone: time.Now.timeZoneId() } : {};
}

/** What the chat says of the app, and which of its agents this chat has. */
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
  /** What the app says of itself. */
  declare protected app: Introduced;
  /** Whether the list of chats is asked for. */
  declare protected listed: boolean;
  /** Whether the list lies over the chat, on a narrow screen. */
  declare protected drawer: boolean;
  declare protected narrow: boolean;
  /** Who the reader is, once the server has said so. */
  declare protected account: Account | null;
  declare protected signIn: SignIn | null;
  /** Whether the chat has settings: then the agent side lists a command for them. */
  declare protected adjustable: boolean;
  /** Whether the chat that the address names does not exist. */
  declare protected missing: boolean;
  readonly client: ArpClient;
  /** Counts changes of the address: what is answered for an earlier one no longer counts. */
  #step = 0;
  #context: ArpContext | null = null;
  /** Whether the words are those that are wanted; until then the document has the direction that it began with. */
  #isWorded = false;
  #worded: Promise<void> = Promise.resolve();
  #entered: Promise<void> = Promise.resolve();
  #token: string | null;
  /** What the address brought: another token than this tab has, which the reader is asked for, and its session. */
  readonly #brought: { readonly token: string; readonly session: string | null } | null;

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
    this.#brought = other === null ? null : { token: other, session: this.current };
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
      // Given, so that Intl need not be asked for them: its first answer costs as much as drawing the page.
      locale: this.settings.locale ?? navigator.language,
      ...timeZone(),
    });
  }

  protected override createRenderRoot(): this {
    return this;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.#worded = this.#loadWords();
    addEventListener("popstate", () => {
      const [session, workflow] = [sessionOf(location.href), workflowOf(location.href)];
      void this.#enter(session, () => this.#show(session, workflow, false));
    });
    addEventListener("storage", ({ key }) => {
      if (key === SETTINGS_KEY) this.#apply(readSettings());
    });
    addEventListener("keydown", this.#key);
    for (const name of ["dragover", "dragleave", "drop"] as const) {
      addEventListener(name, (event) => this.#chat.takeDrag(event, document)); // what is dropped beside the chat is for it too
    }
    this.client.store.status.subscribe(() => {
      const { phase, commands } = this.client.store.status.get();
      this.adjustable = commands.some(({ name }) => name === SETTINGS_COMMAND);
      if (phase === "refused") void this.#askWhoIsThere();
    });
    const { turnIds } = this.client.store;
    turnIds.subscribe(() => {
      const [first] = turnIds.get();
      if (first !== undefined && !isGreeting(this.client.store.turn(first).get())) use();
    });
    this.#entered = this.#enter(this.current, () => this.client.connect());
  }

  /** Enters the chat of the address, if there is one. */
  async #enter(sessionId: string | null, enter: () => void): Promise<void> {
    const step = ++this.#step;
    const missing = await isMissing(sessionId, this.#token);
    if (step !== this.#step) return;
    this.missing = missing;
    if (missing) this.current = sessionId;
    else enter();
  }

  /** Finds out who the reader is, and how somebody signs in who is not let in. */
  async #askWhoIsThere(): Promise<void> {
    const { readAccount, signInOf } = await import("./account.js");
    this.account = await readAccount(this.#token);
    this.signIn = this.account && signInOf(this.account);
  }

  protected override firstUpdated(): void {
    void this.#begin();
  }

  /** Takes the place of what the document showed until now; what was typed there is in the message box then. */
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
      void this.#askWhoIsThere();
      soon(() => void import("@agent-rendering/elements"));
    });
  }

  /** Takes another token only if the reader wants it: with it they may be somebody else. */
  async #askForToken(): Promise<void> {
    if (this.#brought === null) return;
    const { token, session } = this.#brought;
    const { askForToken } = await import("./dialogs.js");
    await this.#worded;
    askForToken(this.#shownContext, () => {
      keepToken(token, sessionStorage);
      history.replaceState(null, "", withSession(location.href, session));
      location.reload();
    });
  }

  /** The message box, unless that would bring up a keyboard. */
  #focus(): void {
    if (!matchMedia("(pointer: coarse)").matches) this.#chat.focus();
  }

  protected override updated(): void {
    const root = document.documentElement;
    if (this.#isWorded) {
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
    this.#isWorded = true;
    this.words = translator(tag, strings);
  }

  #apply(settings: Settings): void {
    const isOther = settings.locale !== this.settings.locale;
    this.settings = settings;
    if (isOther) void this.#loadWords();
  }

  #choose(change: Partial<Settings>): void {
    this.#apply({ ...this.settings, ...change });
    keepSettings(this.settings);
  }

  // -- which chat shows --------------------------------------------------------------------------

  /** Shows a session, `null` begins a new one with an agent; the address follows. */
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

  /** The agent that a new chat begins with: that of the chat that shows. The address names it unless it is the first. */
  get #workflow(): string | null {
    const { agent, agents } = this.app;
    return agent === null || agent.name === agents[0]?.name ? null : agent.name;
  }

  /** Another agent was chosen; the choice in an empty chat is no step of its own. */
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
    if (event && (event.metaKey || event.ctrlKey || event.shiftKey)) return; // a tab of its own
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
    const does: { [key: string]: () => void } = {
      "/": () => this.#chat.focus(),
      n: () => this.#new(),
      s: () => this.#search(),
      "?": () => void this.#keys(),
    };
    const act = does[event.key];
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
    const places = [".page-side", ".page-head", ".arp-scroller", ".arp-side-body", ".arp-permission", "arp-composer"]
      .map((name) => this.querySelector<HTMLElement>(name))
      .filter((place) => place !== null && place.checkVisibility());
    const here = places.findIndex((place) => place?.contains(document.activeElement));
    const next = places.at((here + step + places.length) % places.length);
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

  /** A token was entered in the chat. */
  #tokenEntered = ({ detail }: CustomEvent<{ token: string }>): void => {
    this.#token = detail.token;
    keepToken(detail.token, sessionStorage);
    this.#chat.addEventListener("arp-connect", this.#letIn, { once: true });
    this.client.connect();
    this.#focus();
  };

  /** What was refused without a token is asked for again. */
  #letIn = (): void => {
    this.#list?.refresh();
    void this.#askWhoIsThere();
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

  /** The way out, for somebody who has signed in. */
  #leaving(): MenuItem[] {
    const { account } = this;
    if (!account?.user || account.logout_url === null) return [];
    const leave = async () => (await import("./account.js")).signOut(account);
    return [
      { label: this.words("signOut"), group: account.user.display_name || account.user.name, run: () => void leave() },
    ];
  }

  /** Opens the settings of the chat; an app without them has a command of its own of that name. */
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
      ...this.#leaving(),
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
