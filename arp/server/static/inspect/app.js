/** The page: what is chosen, what is drawn when, and the page's address. */

import { asker, Catalog } from "./catalog.js";
import { readAccount, signInAddress } from "./account.js";
import { at, el, setText } from "./dom.js";
import { detail } from "./detail.js";
import { rowsOf, rowWith } from "./fact_window.js";
import { Filters } from "./filters.js";
import { link } from "./grid.js";
import { nothing, PANELS } from "./panels.js";
import { addressOf, readPlace, rpcAddress, tabStorage, Token, tokenIn } from "./place.js";
import { Rpc } from "./rpc.js";
import { SessionList } from "./sessions.js";
import { tell } from "./story.js";
import { Tabs } from "./tabs.js";
import { Timeline } from "./timeline.js";
import { Watch } from "./watch.js";
import { ago, count, span } from "./words.js";

const LINKS = {
  connecting: "Connecting",
  online: "Connected",
  waiting: "Connection lost, trying again",
  refused: "Not signed in",
};
const CLOCK_MS = 1000;

class Page {
  token = new Token(tabStorage());
  #drawing = false;
  #status = "";
  #panel = "";
  /** The failed turn whose traceback was asked for. */
  #traced = "";
  /** The fact that the address names. */
  #seq = null;
  /** Whether the catalog is shown, in the place of a session. */
  #inCatalog = false;

  constructor() {
    this.rpc = new Rpc({
      url: rpcAddress(document.baseURI),
      token: () => this.token.value,
      onPhase: () => this.#phaseChanged(),
      onNotice: (method, params) => this.watch.notice(method, params),
    });
    this.watch = new Watch(this.rpc, () => this.draw());
    this.sessions = new SessionList(
      (params) => this.rpc.call("agentSession/list", params),
      (id) => this.#go({ session: id }),
    );
    this.filters = new Filters(
      (filter) => this.#search(filter),
      () => this.draw(),
    );
    this.catalog = new Catalog(
      asker(document.baseURI, () => this.token.value),
      at("catalog"),
    );
    this.tabs = new Tabs(() => this.#tabChanged());
    this.timeline = new Timeline(at("facts"), {
      choose: (row) => this.#choose(row),
      older: () => this.watch.older(),
      newer: () => this.watch.newer(),
    });
    this.#listen();
  }

  start() {
    this.#readAddress();
    this.rpc.connect();
    setInterval(() => this.#tick(), CLOCK_MS);
  }

  #tick() {
    if (document.hidden) return;
    this.sessions.draw();
    if (this.#inCatalog) this.catalog.refresh(Date.now());
    this.draw();
  }

  #listen() {
    addEventListener("hashchange", () => this.#readAddress());
    at("newest").addEventListener("click", () => this.#newest());
    at("further").addEventListener("click", () => this.watch.older());
    at("retry").addEventListener("click", () => this.rpc.connect());
    at("show-sessions").addEventListener("click", () => this.#toggleSessions());
    at("sign-in").addEventListener("submit", (event) => {
      event.preventDefault();
      this.token.keep(tokenIn(at("token").value));
      this.rpc.connect();
    });
    addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !at("detail").hidden) this.#close();
      if (event.key === "/" && !isTyping(event.target)) {
        event.preventDefault();
        this.tabs.choose("timeline");
        at("search").focus();
      }
    });
  }

  // -- where we are -------------------------------------------------------------------------------

  #readAddress() {
    const place = readPlace(location.href);
    if (place.token !== null) {
      this.token.keep(place.token);
      history.replaceState(null, "", addressOf(location.href, place));
    }
    this.#show(place);
  }

  /** Goes to a place as a link would: the browser's back leads here again. */
  #go(place) {
    history.pushState(null, "", addressOf(location.href, place));
    this.#show(place);
  }

  #show({ session, seq, view = null }) {
    this.#inCatalog = session === null && view === "catalog";
    if (this.#inCatalog) {
      this.catalog.due();
      this.catalog.refresh(Date.now());
      view = null;
    }
    if (view !== null || seq !== null) this.tabs.choose(view ?? "timeline");
    at("page").classList.remove("choosing");
    if (session !== this.watch.sessionId) this.#open(session, seq);
    else if (seq) this.#reach(seq);
  }

  #open(session, seq) {
    this.#close(false);
    this.filters.clear();
    this.watch.window.filter = this.filters.filter;
    this.sessions.chosen = session;
    this.timeline.chosen = this.#seq = seq;
    this.timeline.following = !seq;
    if (session === null) this.watch.close();
    else if (this.rpc.phase === "online") this.#openNow(session, seq);
    else this.watch.sessionId = session;
    this.draw();
  }

  async #openNow(session, seq) {
    await this.watch.open(session, seq);
    if (seq) this.#reveal(seq);
  }

  /** Shows a fact, wherever it is. */
  async #reach(seq) {
    this.tabs.choose("timeline");
    this.timeline.following = false;
    if (!this.watch.window.facts.some((fact) => fact.sequence === seq)) this.filters.clear();
    await this.watch.reach(seq);
    this.#reveal(seq);
  }

  #reveal(seq) {
    this.timeline.chosen = seq;
    this.#drawTimeline();
    if (!this.timeline.reveal(seq)) {
      at("said").textContent = `Fact ${seq} is not there.`;
      return;
    }
    const row = this.timeline.rows[rowWith(this.timeline.rows, seq)];
    this.#choose(row, seq);
  }

  jump = (seq) => this.#go({ session: this.watch.sessionId, seq });

  #tabChanged() {
    this.#panel = "";
    const view = this.tabs.chosen === "timeline" ? null : this.tabs.chosen;
    if (this.watch.sessionId !== null) this.#note({ view, seq: view ? null : this.#seq });
    if (view) at("detail").hidden = true;
    this.draw();
  }

  #note(more) {
    const place = { session: this.watch.sessionId, ...more };
    history.replaceState(null, "", addressOf(location.href, place));
  }

  // -- the timeline -------------------------------------------------------------------------------

  #search(filter) {
    this.timeline.following = true;
    this.watch.search(filter);
  }

  #newest() {
    if (this.watch.window.live) this.timeline.follow();
    else {
      this.timeline.following = true;
      this.watch.newest();
    }
    this.draw();
  }

  #choose(row, seq = row.seq) {
    this.#seq = seq;
    this.#note({ seq });
    const box = at("detail");
    box.replaceChildren(
      ...detail(row, {
        close: () => this.#close(),
        copy: (text, what) => this.#copy(text, what),
        narrow: (name, id) => this.filters.narrow(name, id),
      }).filter(Boolean),
    );
    box.hidden = false;
    box.scrollTop = 0;
  }

  #close(returns = true) {
    at("detail").hidden = true;
    this.timeline.chosen = this.#seq = null;
    if (!returns) return;
    this.#note({});
    at("facts").focus({ preventScroll: true });
    this.draw();
  }

  async #copy(text, what) {
    try {
      await navigator.clipboard.writeText(text);
      setText(at("said"), `Copied ${what}.`);
    } catch {
      setText(at("said"), `The browser does not let this page copy ${what}.`);
    }
  }

  // -- the connection -----------------------------------------------------------------------------

  #phaseChanged() {
    const { phase } = this.rpc;
    if (phase === "online") {
      this.sessions.refresh();
      const { session, seq } = readPlace(location.href);
      if (session !== null && this.watch.snapshot === null) this.#openNow(session, seq);
      else this.watch.resume();
    }
    if (phase === "refused") at("token").focus();
    if (phase === "online" || phase === "refused") this.#askWhoIsThere();
    this.draw();
  }

  /** An admin may list the sessions of all users; who is not signed in may do that elsewhere. */
  async #askWhoIsThere() {
    const account = await readAccount(document.baseURI, this.token.value);
    at("of-all").hidden = !account?.user?.is_admin;
    const address = signInAddress(account, location);
    at("sign-in-elsewhere").hidden = address === null;
    if (address !== null) at("sign-in-link").href = address;
    if (account?.sign_in_text) setText(at("sign-in-text"), account.sign_in_text);
  }

  #toggleSessions() {
    const isOpen = at("page").classList.toggle("choosing");
    at("show-sessions").setAttribute("aria-expanded", String(isOpen));
  }

  // -- drawing ------------------------------------------------------------------------------------

  /** Draws in the next animation frame, once. */
  draw() {
    if (this.#drawing) return;
    this.#drawing = true;
    requestAnimationFrame(() => {
      this.#drawing = false;
      this.#drawNow();
    });
  }

  #drawNow() {
    const { watch, rpc, tabs } = this;
    at("link").className = `link-state ${rpc.phase}`;
    setText(at("link-text"), LINKS[rpc.phase]);
    at("retry").hidden = rpc.phase !== "waiting";
    at("sign-in").hidden = rpc.phase !== "refused";
    const isOpen = watch.sessionId !== null;
    at("catalog").hidden = !this.#inCatalog || rpc.phase === "refused";
    at("welcome").hidden = isOpen || this.#inCatalog || rpc.phase === "refused";
    at("session").hidden = !isOpen || rpc.phase === "refused";
    if (!isOpen) return;
    setText(at("session-id"), watch.sessionId);
    setText(at("session-title"), watch.snapshot?.title || "Session");
    document.title = `${watch.snapshot?.title || watch.sessionId} · ARP inspect`;
    at("trouble").hidden = watch.trouble === null;
    setText(at("trouble"), watch.trouble ?? "");
    tabs.draw(watch.snapshot, watch.head);
    this.#drawNowCard();
    this.#drawPanel();
    if (tabs.chosen === "timeline") {
      this.filters.draw(watch.snapshot);
      this.#drawTimeline();
    }
  }

  #drawNowCard() {
    const { snapshot } = this.watch;
    if (!snapshot) return;
    const now = new Date().toISOString();
    const { tone, status, headline, lines, pending, turn } = tell(snapshot, now);
    this.#drawTraceback(tone === "bad" ? turn : null);
    const card = at("now");
    card.className = tone;
    setText(at("status"), status);
    setText(at("headline"), headline);
    setText(at("heard"), `last fact ${ago(snapshot.updatedAt, Date.now())}`);
    const ticks = pending.length > 0 || lines.some((one) => one.since);
    const key = JSON.stringify([pending, lines, ticks && Math.floor(Date.now() / 1000)]);
    if (card.dataset.key !== key) {
      card.dataset.key = key;
      keepingFocus(at("reasons"), () =>
        at("reasons").replaceChildren(
          ...pending.map((one) => asking(one, now, this.jump)),
          ...lines.map((one) => reason(one, now, this.jump)),
        ),
      );
    }
    if (this.#status !== `${status} ${headline}` && this.#status.split(" ")[0] !== status)
      setText(at("said"), `${status}. ${headline}`);
    this.#status = `${status} ${headline}`;
  }

  /** Shows where a turn failed in the agent's code; a server without `--debug` keeps no traceback. */
  async #drawTraceback(turn) {
    const { sessionId } = this.watch;
    const key = turn === null ? "" : `${sessionId} ${turn.turnId}`;
    if (key === this.#traced) return;
    this.#traced = key;
    at("traceback").hidden = true;
    if (turn === null) return;
    const page = await this.rpc.call("agentSession/debug", { sessionId }).catch(() => null);
    const found = page?.details.findLast((one) => one.turnId === turn.turnId);
    if (!found || key !== this.#traced) return;
    setText(at("traceback-text"), found.details);
    at("traceback").hidden = false;
  }

  #drawPanel() {
    const { snapshot } = this.watch;
    const { chosen } = this.tabs;
    const box = at("panel");
    at("timeline").hidden = chosen !== "timeline";
    box.hidden = chosen === "timeline";
    if (chosen === "timeline" || !snapshot) return;
    const key = `${chosen} ${snapshot.sessionId} ${snapshot.sequence}`;
    if (key === this.#panel) return;
    const isOther = !this.#panel.startsWith(`${chosen} `);
    this.#panel = key;
    box.setAttribute("aria-labelledby", `tab-${chosen}`);
    const nodes = PANELS[chosen].draw(snapshot, this.jump).filter(Boolean);
    const place = box.scrollTop;
    keepingFocus(box, () =>
      box.replaceChildren(
        ...(nodes.length ? nodes : [nothing("Nothing of this has happened in the session.")]),
      ),
    );
    box.scrollTop = isOther ? 0 : place;
  }

  #drawTimeline() {
    const { window, history, head } = this.watch;
    const { timeline } = this;
    timeline.set(rowsOf(window.facts, this.filters.joining));
    const isSearching = !window.filter.isEmpty;
    at("further").hidden = window.atStart || history.busy !== null || !this.watch.snapshot;
    setText(
      at("further"),
      isSearching
        ? `Looked back to #${count(window.low + 1)}. Look further back`
        : "Show older facts",
    );
    at("none").hidden = window.facts.length > 0 || history.busy !== null || !this.watch.snapshot;
    setText(at("none"), isSearching ? "No fact fits the filters." : "No facts.");
    setText(at("found"), found(window, head, history.busy));
    const missed = head - window.high;
    const isAway = !window.live || !timeline.following;
    at("newest").hidden = !isAway;
    setText(at("newest"), missed > 0 ? `Newest (${count(missed)} further on)` : "Newest");
    at("live").hidden = isAway || this.rpc.phase !== "online";
  }
}

/** What is shown of how much. */
function found(window, head, busy) {
  if (busy) return "Reading…";
  const shown = `${count(window.facts.length)} ${window.filter.isEmpty ? "" : "fitting "}facts`;
  if (window.atStart && window.live)
    return window.filter.isEmpty ? shown : `${shown} of ${count(head)}`;
  return `${shown} of #${count(window.low + 1)} to #${count(window.high)}, ${count(head)} in all`;
}

function asking(request, now, go) {
  const text = request.prompt ?? request.tool ?? request.component ?? request.kind;
  const since = span(Date.parse(now) - Date.parse(request.requestedAt));
  return reason(
    {
      tone: "warn",
      text: `Waits for an answer: ${text}${since ? `, for ${since}` : ""}`,
      seq: request.firstSequence,
    },
    now,
    go,
  );
}

function reason({ tone, text, seq, since }, now, go) {
  const time = since ? span(Date.parse(now) - Date.parse(since)) : "";
  return el(
    "li",
    { class: tone },
    el("span", { class: `dot ${tone}` }),
    el("span", { class: "text" }, text),
    time ? el("span", { class: "time" }, time) : null,
    link(seq, go),
  );
}

/** Does something to an element's children; a button in it that has the focus has it afterwards. */
function keepingFocus(box, work) {
  const key = box.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  work();
  if (key) box.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
}

function isTyping(target) {
  return target instanceof Element && target.matches("input, textarea, select");
}

new Page().start();
