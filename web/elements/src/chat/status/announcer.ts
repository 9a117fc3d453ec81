/**
 * What screen readers announce: short lines in a status region, whole answers in a log. Text that
 * grows is never read aloud piece by piece.
 */

import type { Phase } from "@agent-rendering/core";
import type { Translator } from "@agent-rendering/core/strings";

const WORKING_MS = 8000;
/** Of one answer as much is read aloud; the rest is there to be read. */
const SPOKEN_CHARACTERS = 2000;
const KEPT_ANSWERS = 5;

export class Announcer {
  t: Translator;
  /** Nobody knows whether the agent works: there is no connection. */
  isBlind = false;
  /** Whether it waits for an answer of the reader. */
  isAsking = (): boolean => false;
  #status: HTMLElement | null = null;
  #urgent: HTMLElement | null = null;
  #spoken: HTMLElement | null = null;
  #timer: ReturnType<typeof setInterval> | null = null;
  #phase: Phase = "idle";
  #wasLost = false;

  constructor(t: Translator) {
    this.t = t;
  }

  /** Takes the regions: they must have been in the document before an announcement. */
  attach(status: HTMLElement, urgent: HTMLElement, spoken: HTMLElement): void {
    this.#status = status;
    this.#urgent = urgent;
    this.#spoken = spoken;
  }

  say(text: string, isUrgent = false): void {
    const place = isUrgent ? this.#urgent : this.#status;
    if (place === null) return;
    // The same text twice is a change only if it differs: a no-break space does not sound.
    place.textContent = place.textContent === text ? `${text}\u00a0` : text;
  }

  /** Announce a new phase of the connection. Returns whether it came online or was lost; else `null`. */
  connection(phase: Phase): "online" | "lost" | null {
    const before = this.#phase;
    if (phase === before) return null;
    this.#phase = phase;
    this.isBlind = phase !== "online";
    if (phase === "online") {
      if (this.#wasLost || before === "waiting") this.say(this.t("connectedAgain"));
      this.#wasLost = false;
      return "online";
    }
    if (before !== "online") return null;
    this.#wasLost = true;
    this.say(this.t("reconnecting"), true);
    return "lost";
  }

  /** The agent answers; announced now and then until `finish`. */
  working(): void {
    if (this.#timer !== null) return;
    this.say(this.t("answering"));
    this.#timer = setInterval(() => this.isBlind || this.isAsking() || this.say(this.t("stillWorking")), WORKING_MS);
  }

  /** The agent is done; the lines of the answer are read once, each by itself. */
  finish(line: string, answer: readonly string[]): void {
    this.rest();
    this.say(line);
    if (answer.length === 0 || this.#spoken === null) return;
    const spoken = document.createElement("div");
    let room = SPOKEN_CHARACTERS;
    for (const text of answer) {
      if (room <= 0) break;
      const paragraph = document.createElement("p");
      paragraph.textContent = text.slice(0, room);
      room -= text.length;
      spoken.append(paragraph);
    }
    this.#spoken.append(spoken);
    while (this.#spoken.childElementCount > KEPT_ANSWERS) this.#spoken.firstElementChild?.remove();
  }

  /** Stops the announcements of progress. */
  rest(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  /** Another conversation: what was read before is none of its. */
  clear(): void {
    this.rest();
    this.#spoken?.replaceChildren();
  }
}
