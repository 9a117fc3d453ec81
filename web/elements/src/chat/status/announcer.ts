/**
 * Announcements for screen readers: short lines in a status region, whole answers in a log. An answer that is being
 * written is not read until it is complete.
 */

import type { Phase } from "@agent-rendering/core";
import type { Translator } from "@agent-rendering/core/strings";

/** Time between two announcements that the agent still works. */
const WORKING_MS = 8000;
/** Longest part of an answer that is read aloud. */
const SPOKEN_CHARACTERS = 2000;
/** Number of answers that the log keeps. */
const KEPT_ANSWERS = 5;

export class Announcer {
  t: Translator;
  /** Whether there is no connection: then it is unknown whether the agent works. */
  isBlind = false;
  /** Returns whether the agent waits for an answer of the reader. */
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

  /** Use these empty live regions. Screen readers ignore a region that enters the document together with its text. */
  attach(status: HTMLElement, urgent: HTMLElement, spoken: HTMLElement): void {
    this.#status = status;
    this.#urgent = urgent;
    this.#spoken = spoken;
  }

  say(text: string, isUrgent = false): void {
    const place = isUrgent ? this.#urgent : this.#status;
    if (place === null) return;
    // Screen readers announce changes only. To repeat a text, add a no-break space, which is not pronounced.
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

  /** Announce that the agent answers, again every few seconds until `finish` or `rest`. */
  working(): void {
    if (this.#timer !== null) return;
    this.say(this.t("answering"));
    this.#timer = setInterval(() => this.isBlind || this.isAsking() || this.say(this.t("stillWorking")), WORKING_MS);
  }

  /** Announce how a turn ended, and have the lines of its answer read. */
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

  /** Stop announcing progress. */
  rest(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  /** Stop announcing progress, and remove the answers of the previous conversation. */
  clear(): void {
    this.rest();
    this.#spoken?.replaceChildren();
  }
}
