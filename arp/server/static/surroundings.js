/**
 * What stands around the conversation: title, welcome, connection state, notices, the jump button.
 */

import { asList, asText, el, icon, setText } from "./dom.js";
import { pageFor, readPage, keepToken } from "./address.js";

const SESSION_NOT_FOUND = 8;
const UNAUTHENTICATED = 14;
const LABELS = {
  connecting: "Connecting",
  online: "Connected",
  waiting: "Reconnecting",
  refused: "Not connected",
};

/** The parts of the page that are not the conversation. */
export class Surroundings {
  #ticking = null;
  #wasOnline = false;
  #welcomed = false;

  constructor(page) {
    this.page = page;
    for (const name of [
      "title",
      "welcome",
      "greeting",
      "about",
      "suggestions",
      "link",
      "banner",
      "banner-text",
      "notices",
      "jump",
      "loading",
    ]) {
      this[name] = document.getElementById(name);
    }
    document.getElementById("new").href = pageFor(location.href, null);
    this.jump.append(icon("down"), "Jump to latest");
  }

  /** Hears what the browser and the user say about the connection and the place in the page. */
  listen() {
    const retry = () =>
      document.visibilityState === "visible" &&
      this.page.connection.phase === "waiting" &&
      this.page.connection.retryNow();
    addEventListener("online", retry);
    document.addEventListener("visibilitychange", retry);
    addEventListener("hashchange", () => this.#newToken());
    document
      .getElementById("retry")
      .addEventListener("click", () => this.page.connection.retryNow());
    this.jump.addEventListener("click", () => {
      this.page.follow.jump();
      this.page.focusComposer();
    });
  }

  /** Asks the server who its agent is; without an answer the page stays as it is. */
  async loadTitle() {
    const { urls, token } = this.page;
    try {
      const response = await fetch(urls.workflows, {
        headers: token ? { Authorization: `Bearer ${token}` } : {},
      });
      if (response.ok) this.#introduce(asList(await response.json())[0] ?? {});
    } catch {
      /* the banner tells about the connection */
    }
  }

  #introduce({ title, name, description, suggestions }) {
    const heading = asText(title) || asText(name) || "ARP";
    document.title = heading;
    setText(this.title, heading);
    setText(this.greeting, heading);
    setText(this.about, asText(description) || "How can I help?");
    this.suggestions.replaceChildren(
      ...asList(suggestions).map((suggestion) => {
        const text = asText(suggestion?.text ?? suggestion?.label ?? suggestion);
        return el(
          "li",
          {},
          el(
            "button",
            { type: "button", class: "chip", dir: "auto", onclick: () => this.#suggest(text) },
            text,
          ),
        );
      }),
    );
  }

  #suggest(text) {
    this.page.say(text);
    this.page.focusComposer();
  }

  /** Shows the welcome, or that a conversation is being fetched. */
  draw() {
    const { screen, outbox, asked } = this.page;
    const ready = screen.place !== null || !asked.sessionId;
    const empty =
      screen.turns.size === 0 && screen.surfaces.size === 0 && outbox.items.length === 0;
    this.loading.hidden = ready || !empty;
    this.welcome.hidden = !(ready && empty);
    document.body.classList.toggle("empty", !this.welcome.hidden);
  }

  drawJump() {
    const { follow } = this.page;
    this.jump.hidden = follow.following || follow.atEnd;
  }

  /** Shows the phase in the header, and what to do about it in the banner. */
  phaseChanged({ phase }) {
    this.link.className = `link-state ${phase}`;
    setText(this.link.querySelector("span:last-child"), LABELS[phase]);
    if (phase === "online" && this.#welcomed && !this.#wasOnline)
      this.page.announcer.say("Connected again");
    if (this.#wasOnline && phase === "waiting")
      this.page.announcer.say("Connection lost, reconnecting");
    if (phase === "online") this.#welcomed = true;
    this.#wasOnline = phase === "online" || (this.#wasOnline && phase === "connecting");
    clearInterval(this.#ticking);
    this.#ticking = phase === "waiting" ? setInterval(() => this.#drawBanner(), 1000) : null;
    this.#drawBanner();
  }

  #drawBanner() {
    const { phase, attempt, retryAt } = this.page.connection;
    const left = Math.max(0, Math.ceil((retryAt - Date.now()) / 1000));
    this.banner.hidden = phase === "online" || (phase === "connecting" && attempt === 0);
    const lines = {
      refused: "The server did not let this page in.",
      connecting: `Reconnecting, try ${attempt}…`,
      waiting: `Connection lost. Try ${attempt} in ${left} s; what you write is kept.`,
    };
    setText(this["banner-text"], lines[phase] ?? "");
  }

  /** Tells an error that belongs to no message and no question. */
  complain({ code, error }) {
    if (code === SESSION_NOT_FOUND)
      return this.notice("This chat does not exist, or is not yours. Start a new one.");
    if (code === UNAUTHENTICATED)
      return this.notice(
        "This server wants a token: put #token=… with the token behind this page's address. " +
          "Whoever started the server has it.",
      );
    return this.notice(error);
  }

  /** Shows a line until the user closes it. */
  notice(text) {
    const line = el(
      "li",
      { class: "notice" },
      el("span", { dir: "auto" }, asText(text)),
      el(
        "button",
        { "type": "button", "aria-label": "Close", "onclick": () => line.remove() },
        icon("close"),
      ),
    );
    const same = [...this.notices.children].find((other) => other.textContent === line.textContent);
    if (!same) this.notices.append(line);
    this.page.announcer.say(asText(text));
  }

  #newToken() {
    const { token } = readPage(location.href);
    if (!token) return;
    this.page.token = keepToken(this.page.store, token);
    history.replaceState(
      null,
      "",
      pageFor(location.href, this.page.screen.sessionId ?? this.page.asked.sessionId),
    );
    this.loadTitle();
    this.page.connection.retryNow();
  }
}
