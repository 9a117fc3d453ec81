/**
 * The reader's last input: find its element, for `Follow` to bring it to the top of the view.
 *
 * Theory of operation. An input is first drawn as an outgoing bubble, and when the server has acknowledged it, as the
 * beginning of its turn, by another element. So it is looked for after each drawing: by the id of the input until its
 * turn is known, then by the id of the turn. An input that is sent while the agent works is queued. It is not brought
 * to the top before its turn begins, because the reader reads the answer before it.
 */

import type { ArpClient } from "@agent-rendering/core";

import type { Follow } from "./follow.js";
import { isBubble } from "../composer/outgoing.js";

export class LastInput {
  /** Id of the input; `null` if there was none, or it began no turn. */
  #input: string | null = null;
  /** Id of the turn that the input began; `null` until it is known. */
  #turn: string | null = null;
  /** Whether the agent was idle, and no other input was on its way, when this one was sent. */
  #wasIdle = false;
  /** Whether its turn has been queued. */
  #wasQueued = false;
  /** Element that was last given to `Follow`; `null` before the first. */
  #element: HTMLElement | null = null;

  clear(): void {
    this.#input = this.#turn = this.#element = null;
  }

  /**
   * Set the input that was just sent. It may begin a turn, or a new version of a turn.
   *
   * @param changed Called when the turn of the input is known. The turn may be drawn already, without another drawing.
   */
  async sent(client: ArpClient, input: string, changed: () => void): Promise<void> {
    const { turnIds, outgoing, status } = client.store;
    const before = turnIds.get();
    this.clear();
    this.#input = input;
    this.#wasQueued = false;
    this.#wasIdle =
      status.get().activeTurn === null &&
      !outgoing.get().some((item) => item.id !== input && item.phase !== "refused" && isBubble(item));
    const turn = await client.acknowledged(input).catch(() => null);
    // A newer input was sent meanwhile; or this one was refused, and its bubble keeps the place at the top.
    if (this.#input !== input || turn === null) return;
    if (before.includes(turn)) return this.clear(); // it was added to an existing turn, which keeps its place
    this.#turn = turn;
    changed();
  }

  /** Find the element of the input. Called after each drawing, and when the turn of the input is queued or begins. */
  look(client: ArpClient, chat: Element, follow: Follow): void {
    if (this.#input === null) return;
    const status = this.#turn === null ? null : client.screen.status(this.#turn);
    this.#wasQueued ||= status === "queued";
    // The input waits for a running turn. Scrolling to it would take the reader away from that turn's answer.
    if (!this.#wasIdle && (status == null || status === "queued")) return;
    const name =
      this.#turn === null ? `[data-input="${CSS.escape(this.#input)}"]` : `[data-turn="${CSS.escape(this.#turn)}"]`;
    const element = chat.querySelector<HTMLElement>(`.arp-log ${name}`);
    if (element === null || element === this.#element) return;
    const isRedrawn = this.#element !== null;
    this.#element = element;
    if (isRedrawn) return follow.redrawn(element);
    if (!this.#wasIdle && !follow.following) return this.clear(); // the reader has scrolled away meanwhile
    // A queued input is below the answer before it, which may still be read. With room, it would jump to the top.
    follow.ask(element, this.#wasIdle || !this.#wasQueued);
  }
}
