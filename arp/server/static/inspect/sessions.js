/** The list of sessions, newest first: asked for again and again while the page is looked at. */

import { arrange, at, el, setText } from "./dom.js";
import { ago, count } from "./words.js";

const EVERY_MS = 5000;
const PAGE = 50;
/** Sessions that are listed at most; older ones are opened by their id. */
const MOST = 500;

export class SessionList {
  #rows = new Map();
  #nodes = new Map();
  #next = null;
  #chosen = null;
  #failed = false;

  /**
   * @param ask (params) gives a page of `agentSession/list`.
   * @param open (id) opens a session.
   */
  constructor(ask, open) {
    this.ask = ask;
    this.open = open;
    this.list = at("session-list");
    this.more = at("more-sessions");
    this.find = at("find-session");
    this.more.addEventListener("click", () => this.#older());
    this.find.addEventListener("input", () => this.draw());
    this.all = at("all-users");
    this.all.addEventListener("change", () => this.#startOver());
    at("find").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#openFound();
    });
    setInterval(() => document.hidden || this.refresh(), EVERY_MS);
    document.addEventListener("visibilitychange", () => document.hidden || this.refresh());
  }

  set chosen(id) {
    this.#chosen = id;
    this.draw();
  }

  /** Asks for the newest page; older ones that are listed stay. */
  async refresh() {
    await this.#load({ limit: PAGE }, this.#rows.size === 0);
  }

  /** Lists other sessions than until now. */
  #startOver() {
    this.#rows.clear();
    this.#nodes.clear();
    this.#next = null;
    this.draw();
    this.refresh();
  }

  async #older() {
    if (this.#next) await this.#load({ limit: PAGE, before: this.#next }, true);
  }

  async #load(params, movesOn) {
    let page;
    const allUsers = this.all.checked;
    try {
      page = await this.ask(allUsers ? { ...params, allUsers } : params);
    } catch {
      this.#failed = true;
      return;
    }
    if (allUsers !== this.all.checked) return; // of the list before
    this.#failed = false;
    for (const row of page.sessions) this.#rows.set(row.sessionId, row);
    this.#letGo();
    if (movesOn) this.#next = page.next ?? null;
    this.draw();
  }

  /** A page that is open for days sees more sessions than it lists. */
  #letGo() {
    const over = [...this.#rows.values()].sort(newestFirst).slice(MOST);
    for (const { sessionId } of over) {
      this.#rows.delete(sessionId);
      this.#nodes.delete(sessionId);
    }
  }

  #openFound() {
    const text = this.find.value.trim();
    const [first] = this.#shown();
    if (text) this.open(this.#rows.has(text) ? text : (first?.sessionId ?? text));
  }

  #shown() {
    const text = this.find.value.trim().toLowerCase();
    return [...this.#rows.values()]
      .filter(
        (row) =>
          !text ||
          [row.sessionId, row.title, row.workflow, row.owner].join(" ").toLowerCase().includes(text),
      )
      .sort(newestFirst);
  }

  draw() {
    const now = Date.now();
    const shown = this.#shown();
    arrange(
      this.list,
      shown.map((row) => this.#draw(row, now)),
    );
    this.more.hidden = !this.#next || this.#rows.size >= MOST;
    const empty = at("no-sessions");
    empty.hidden = shown.length > 0;
    setText(
      empty,
      this.#failed
        ? "The list cannot be read."
        : this.find.value
          ? "None of these. Enter opens a session by its id."
          : "No sessions yet.",
    );
  }

  #draw(row, now) {
    let item = this.#nodes.get(row.sessionId);
    if (!item) {
      const button = el(
        "button",
        { type: "button", onclick: () => this.open(row.sessionId) },
        el("span", { class: "dot" }),
        el("span", { class: "title" }),
        el("span", { class: "meta" }),
      );
      item = el("li", {}, button);
      this.#nodes.set(row.sessionId, item);
    }
    const [button] = item.children;
    const [dot, title, meta] = button.children;
    dot.className = `dot ${row.active ? "busy" : row.failed ? "bad" : "plain"}`;
    dot.title = row.active ? "A turn runs or waits" : row.failed ? "The last turn failed" : "";
    setText(title, row.title || row.sessionId);
    title.title = row.sessionId;
    const turns = `${count(row.turns)} ${row.turns === 1 ? "turn" : "turns"}`;
    setText(
      meta,
      [row.owner, ago(row.updatedAt, now), turns, row.active ? "active" : row.failed ? "failed" : ""]
        .filter(Boolean)
        .join(" · "),
    );
    const isChosen = row.sessionId === this.#chosen;
    if (isChosen) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
    return item;
  }
}

function newestFirst(a, b) {
  return a.updatedAt < b.updatedAt ? 1 : -1;
}
