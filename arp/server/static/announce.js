/**
 * What assistive technology hears: short lines in a status region, whole answers in a log, each
 * once. Streaming text is never announced piece by piece.
 */

const STILL_MS = 10000;
const LONGEST = 4000;

/** The two live regions. */
export class Announcer {
  #status;
  #log;
  #timer = null;

  constructor(status, log) {
    this.#status = status;
    this.#log = log;
  }

  /** A short line; the same one twice is heard twice. */
  say(text) {
    this.#status.textContent = "";
    requestAnimationFrame(() => {
      this.#status.textContent = text;
    });
  }

  /** An agent begins or goes on to work: says so, and again now and then until `finish`. */
  working() {
    if (this.#timer !== null) return;
    this.say("Answering");
    this.#timer = setInterval(() => this.say("Still working"), STILL_MS);
  }

  /** The work has ended or waits for the user: `line` says how, `text` is the whole answer. */
  finish(line, text) {
    clearInterval(this.#timer);
    this.#timer = null;
    this.say(line);
    if (!text) return;
    const entry = document.createElement("p");
    entry.textContent = text.slice(0, LONGEST);
    this.#log.replaceChildren(entry);
    setTimeout(() => entry.remove(), STILL_MS);
  }
}
