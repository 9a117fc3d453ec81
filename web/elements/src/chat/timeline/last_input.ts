/** Finds the user's last input, which `Follow` brings to the top of the view. */

import type { ArpClient } from "@agent-rendering/core";

import type { Follow } from "./follow.js";
import { isBubble } from "../composer/outgoing.js";

export class LastInput {
  /** The input; `null` when there was none, or it began no turn. */
  #input: string | null = null;
  /** The turn that it began; `null` until that is known. */
  #turn: string | null = null;
  /** Whether the agent was free when it was sent. */
  #isFree = false;
  #wasInLine = false;
  /** Where it shows; `null` while it is not at the top yet. */
  #element: HTMLElement | null = null;

  clear(): void {
    this.#input = this.#turn = this.#element = null;
  }

  /**
   * Something was sent just now that may begin a turn, or another version of one.
   *
   * @param changed Is called when its turn is known, which may be drawn already.
   */
  async sent(client: ArpClient, input: string, changed: () => void): Promise<void> {
    const { turnIds, outgoing, status } = client.store;
    const before = turnIds.get();
    this.clear();
    this.#input = input;
    this.#wasInLine = false;
    this.#isFree =
      status.get().activeTurn === null &&
      !outgoing.get().some((item) => item.id !== input && item.phase !== "refused" && isBubble(item));
    const turn = await client.acknowledged(input).catch(() => null);
    if (this.#input !== input || turn === null) return; // it was refused: its bubble is there
    if (before.includes(turn)) return this.clear();
    this.#turn = turn;
    changed();
  }

  /** Looks where it shows: after each drawing, and when its turn waits or begins. */
  look(client: ArpClient, chat: Element, follow: Follow): void {
    if (this.#input === null) return;
    const status = this.#turn === null ? null : client.screen.status(this.#turn);
    this.#wasInLine ||= status === "queued";
    // It waits for what runs: the reader is with that.
    if (!this.#isFree && (status == null || status === "queued")) return;
    const name =
      this.#turn === null ? `[data-input="${CSS.escape(this.#input)}"]` : `[data-turn="${CSS.escape(this.#turn)}"]`;
    const element = chat.querySelector<HTMLElement>(`.arp-log ${name}`);
    if (element === null || element === this.#element) return;
    const isDrawnAnew = this.#element !== null;
    this.#element = element;
    if (isDrawnAnew) return follow.redrawn(element);
    if (!this.#isFree && !follow.following) return this.clear(); // the reader has gone elsewhere meanwhile
    // A queued one has its place below the answer before it, which may be read still: it stays there.
    follow.ask(element, this.#isFree || !this.#wasInLine);
  }
}
