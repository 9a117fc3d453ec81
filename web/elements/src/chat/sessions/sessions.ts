/** `<arp-sessions>`: the list of chats by day, with search, and actions to rename, pin and delete (with undo). */

import type { ArpClient, ArpError, Remainder, Storage, Wire } from "@agent-rendering/core";
import { html, nothing, type PropertyValues, type TemplateResult } from "lit";
import { repeat } from "lit/directives/repeat.js";

import { createContext, type ArpContext } from "../../base/context.js";
import { ArpElement, define } from "../../base/element.js";
import { wrong } from "../../base/wrong.js";
import { byDay, ChatList, type ChatRow, type When } from "./chat_list.js";
import { UNDO_MS, type Deleted } from "./deletions.js";
import { browserStorage } from "../composer/drafts.js";
import { icon } from "../icons.js";
import "../composer/menu.js";
import sessionStyles from "./sessions.css?inline";
import { adopter, adoptChatStyles } from "../styles.js";

const SEARCH_MS = 200;

const adopt = adopter(sessionStyles);

export class ArpSessions extends ArpElement {
  static override properties = {
    client: { attribute: false },
    context: { attribute: false },
    current: { attribute: false },
    agents: { attribute: false },
    renaming: { state: true },
    deleted: { state: true },
    remains: { state: true },
    refusal: { state: true },
  };

  declare client: ArpClient | null;
  declare context: ArpContext;
  /** Id of the session that is open. */
  declare current: string | null;
  /** Agents of the app. If there are several, each row names the agent of its chat. */
  declare agents: readonly Wire.Workflow[];
  declare protected renaming: string | null;
  /** Chat whose deletion can still be undone. */
  declare protected deleted: ChatRow | null;
  /** Data of the last deleted chat that still exists elsewhere. */
  declare protected remains: readonly Remainder[];
  /** Reason why the last deletion was refused. */
  declare protected refusal: ArpError | null;
  /** Storage of deletions over a reload; `null` stores none. */
  storage: Storage | null = browserStorage();
  #list: ChatList | null = null;
  #stop: (() => void) | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #searching: ReturnType<typeof setTimeout> | null = null;
  #seen: IntersectionObserver | null = null;

  constructor() {
    super();
    this.client = null;
    this.context = createContext();
    this.current = this.renaming = this.deleted = this.refusal = null;
    this.agents = [];
    this.remains = [];
  }

  override connectedCallback(): void {
    super.connectedCallback();
    adoptChatStyles(this.getRootNode());
    adopt(this.getRootNode());
    this.classList.add("arp-sessions");
    addEventListener("pagehide", this.#leave);
    addEventListener("storage", this.#resume);
    if (this.hasUpdated) this.#open();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    removeEventListener("pagehide", this.#leave);
    removeEventListener("storage", this.#resume);
    this.#leave();
    this.#stop?.();
    this.#stop = this.#list = null;
    this.#seen?.disconnect();
  }

  /** Focus the search field. */
  override focus(): void {
    this.querySelector<HTMLInputElement>("input[type=search]")?.focus();
  }

  /** Request the list again. */
  refresh(): void {
    void this.#list?.refresh();
  }

  protected override willUpdate(changed: PropertyValues): void {
    if (changed.has("client")) this.#open();
  }

  protected override updated(): void {
    const end = this.querySelector(".arp-sessions-more");
    this.#seen ??= new IntersectionObserver((entries) => {
      if (entries.some(({ isIntersecting }) => isIntersecting)) void this.#list?.more();
    });
    this.#seen.disconnect();
    if (end) this.#seen.observe(end);
  }

  #open(): void {
    this.#stop?.();
    this.#stop = this.#list = null;
    if (this.client === null) return;
    this.#list = new ChatList(this.client, () => this.requestUpdate(), this.storage, this.#gone);
    this.#stop = this.#list.watch();
  }

  protected override render(): TemplateResult {
    const { t } = this.context;
    const list = this.#list;
    return html`<div class="arp-sessions-head">
        <label class="arp-sessions-search">
          ${icon("search")}<span class="arp-hidden">${t("searchChats")}</span>
          <input type="search" placeholder=${t("searchChats")} autocomplete="off" spellcheck="false" @input=${this.#search} />
        </label>
      </div>
      <nav class="arp-sessions-list" aria-label=${t("chats")} @keydown=${this.#key}>${list === null ? nothing : this.#rows(list)}</nav>
      ${
        this.deleted === null
          ? nothing
          : html`<div class="arp-undo" role="status"><span>${t("chatDeleted")}</span><button type="button" class="arp-button arp-quiet" @click=${() => this.#undo()}>${t("undo")}</button></div>`
      }
      ${this.remains.map(
        (one) =>
          html`<div class="arp-undo" role="alert"><span>${t("chatRemains", { keeper: one.keeper, reason: one.reason })}</span><button type="button" class="arp-button arp-quiet" @click=${() => (this.remains = [])}>${t("close")}</button></div>`,
      )}${
        this.refusal === null
          ? nothing
          : html`<div class="arp-undo" role="alert"><span>${wrong(this.refusal.payload, t, (error) => t("chatNotDeleted", { error }))}</span><button type="button" class="arp-button arp-quiet" @click=${() => (this.refusal = null)}>${t("close")}</button></div>`
      }`;
  }

  #rows(list: ChatList): unknown {
    const { t } = this.context;
    const rows = list.shown;
    if (list.state === "failed") {
      return html`<div class="arp-sessions-none" role="alert">
        <p>${t("chatsFailed")}</p>
        <button type="button" class="arp-button arp-soft" @click=${() => list.refresh()}>${t("retry")}</button>
      </div>`;
    }
    if (list.state === "loading")
      return html`<div class="arp-skeleton" role="img" aria-label=${t("loading")}><span></span><span></span><span></span></div>`;
    if (rows.length === 0)
      return html`<p class="arp-sessions-none">${t(list.query === "" ? "noChats" : "noMatches")}</p>`;
    const groups = list.query === "" ? [...byDay(rows, new Date())] : ([["", rows]] as const);
    return html`${repeat(
      groups as readonly (readonly [When | "", readonly ChatRow[]])[],
      ([when]) => when,
      ([when, rows]) => html`<section>
        ${when === "" ? nothing : html`<h2>${this.#heading(when)}</h2>`}
        <ul>
          ${repeat(
            rows,
            ({ id }) => id,
            (row) => this.#row(row),
          )}
        </ul>
      </section>`,
    )}${list.next === null ? nothing : html`<p class="arp-sessions-more"><span class="arp-spinner"></span><span class="arp-hidden">${t("loading")}</span></p>`}`;
  }

  #heading(when: When): string {
    const { t } = this.context;
    return when === "pinned" ? t("pinned") : t(when);
  }

  #row(row: ChatRow): TemplateResult {
    const { t } = this.context;
    const title = row.title || t("newChat");
    const agent =
      this.agents.length > 1
        ? (this.agents.find(({ name }) => name === row.workflow_name)?.title ?? row.workflow_name)
        : "";
    if (this.renaming === row.id) return html`<li>${this.#renamer(row)}</li>`;
    const items = [
      { label: t("rename"), icon: "edit" as const, run: () => void this.#rename(row) },
      {
        label: t(row.pinned ? "unpin" : "pin"),
        icon: "pin" as const,
        run: () => void this.#change(row, { pinned: !row.pinned }),
      },
      { label: t("deleteChat"), icon: "trash" as const, run: () => this.#delete(row) },
    ];
    return html`<li class="arp-session" data-id=${row.id}>
      <a href="?session=${encodeURIComponent(row.id)}" aria-current=${row.id === this.current ? "page" : nothing} @click=${(event: MouseEvent) => this.#go(event, row)}>
        <span class="arp-session-title" dir="auto">${title}</span>
        ${agent ? html`<span class="arp-session-agent" dir="auto">${agent}</span>` : nothing}
        ${row.match ? html`<span class="arp-session-match" dir="auto">${row.match.text}</span>` : nothing}
      </a>
      <arp-menu .label=${`${t("conversationOptions")}: ${title}`} .items=${items}></arp-menu>
    </li>`;
  }

  #renamer(row: ChatRow): TemplateResult {
    const { t } = this.context;
    const end = (title: string | null) => {
      if (this.renaming !== row.id) return; // Enter and Escape remove the field, which then reports a blur as well
      this.renaming = null;
      if (title !== null && title.trim() !== row.title) void this.#change(row, { title: title.trim() });
      void this.updateComplete.then(() => this.#link(row.id)?.focus());
    };
    return html`<input
      class="arp-input arp-session-name"
      dir="auto"
      maxlength="80"
      aria-label=${t("rename")}
      .value=${row.title}
      @keydown=${(event: KeyboardEvent) => {
        if (event.isComposing) return;
        if (event.key === "Escape") event.stopPropagation(); // otherwise a page could close the drawer of the list
        if (event.key === "Enter" || event.key === "Escape")
          end(event.key === "Enter" ? (event.target as HTMLInputElement).value : null);
      }}
      @blur=${(event: FocusEvent) => end((event.target as HTMLInputElement).value)}
    />`;
  }

  #link(id: string): HTMLElement | null {
    return this.querySelector(`.arp-session[data-id="${CSS.escape(id)}"] a`);
  }

  #go(event: MouseEvent, row: ChatRow): void {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return; // the browser opens a new tab
    event.preventDefault();
    this.#emit("arp-open", row.id);
  }

  #emit(name: string, sessionId: string): void {
    this.dispatchEvent(new CustomEvent(name, { detail: { sessionId }, bubbles: true, composed: true }));
  }

  #search = (event: Event): void => {
    const { value } = event.target as HTMLInputElement;
    if (this.#searching !== null) clearTimeout(this.#searching);
    this.#searching = setTimeout(async () => {
      await this.#list?.search(value.trim());
      this.context.announce(this.context.t("chatsFound", { count: this.#list?.shown.length ?? 0 }));
    }, SEARCH_MS);
  };

  async #rename(row: ChatRow): Promise<void> {
    this.renaming = row.id;
    await this.updateComplete;
    this.querySelector<HTMLInputElement>(".arp-session-name")?.select();
  }

  async #change(row: ChatRow, change: { title?: string; pinned?: boolean }): Promise<void> {
    try {
      await this.#list?.change(row.id, change);
    } catch (error) {
      this.context.announce(String((error as Error).message));
    }
  }

  #delete(row: ChatRow): void {
    this.#list?.deletions.ask(row.id);
    this.#offerUndo(row);
    this.#emit("arp-deleted", row.id);
    void this.updateComplete.then(() => this.querySelector<HTMLElement>(".arp-undo button")?.focus());
  }

  #offerUndo(row: ChatRow | null): void {
    clearTimeout(this.#timer);
    this.deleted = row;
    if (row !== null) this.#timer = setTimeout(() => this.#offerUndo(null), UNDO_MS);
  }

  #undo(): void {
    const row = this.deleted;
    this.#offerUndo(null);
    if (row === null) return;
    this.#list?.deletions.undo(row.id);
    this.#emit("arp-open", row.id);
    void this.updateComplete.then(() => this.#link(row.id)?.focus());
  }

  readonly #gone = ({ id, remains, error }: Deleted): void => {
    if (this.deleted?.id === id) this.#offerUndo(null);
    this.remains = remains;
    this.refusal = error;
  };

  readonly #resume = (): void => this.#list?.deletions.resume();

  /** Complete what is pending before the page is left: deletions, and a name that is being typed. */
  readonly #leave = (): void => {
    this.#offerUndo(null);
    this.#list?.deletions.flush();
    this.querySelector<HTMLElement>(".arp-session-name")?.blur();
  };

  /** Move the focus from chat to chat with the arrow keys. */
  #key = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    const target = event.target as HTMLElement;
    if (step === 0 || target.closest(".arp-menu-list, input")) return;
    const links = [...this.querySelectorAll<HTMLElement>(".arp-session a")];
    const here = links.findIndex((link) => link.parentElement?.contains(target));
    const next = links[here + step];
    if (!next) return;
    event.preventDefault();
    next.focus();
  };
}

define("arp-sessions", ArpSessions);
