/** Turns older than what the connection told, loaded page by page. */

import type { ArpClient, TurnState } from "@agent-rendering/core";

/** One page of older turns; as many the connection tells, of a server that does not say how many are older. */
export const PAGE_TURNS = 50;

export class Older {
  /** Oldest first. */
  turns: readonly TurnState[] = [];
  loading = false;
  #first: string | null = null;
  /** How many there are; `null` where the server does not say. */
  #count: number | null = null;
  #hasMore = false;
  readonly #changed: () => void;

  constructor(changed: () => void) {
    this.#changed = changed;
  }

  /** Whether there may be more. */
  get wanted(): boolean {
    return this.#hasMore;
  }

  clear(): void {
    this.turns = [];
    this.#first = null;
    this.#hasMore = this.loading = false;
  }

  /**
   * Looks at the turns that the connection told: with another first one it is another screen.
   *
   * @param count How many came before the first of them, where the server says so.
   */
  check(ids: readonly string[], count: number | null = null): void {
    const first = ids[0] ?? null;
    if (first === this.#first) return;
    this.#first = first;
    this.turns = [];
    this.#count = count;
    this.#hasMore = first !== null && (count === null ? ids.length >= PAGE_TURNS : count > 0);
  }

  /**
   * Loads one page; what fails may be asked for again.
   *
   * @param about Is called when it is there, before it shows.
   */
  async load(client: ArpClient, limit = PAGE_TURNS, about: () => void = () => undefined): Promise<void> {
    const { sessionId } = client;
    const first = this.#first;
    if (this.loading || !this.#hasMore || sessionId === null || first === null) return;
    this.loading = true;
    this.#changed();
    try {
      const { olderTurns } = await import("./history.js");
      const turns = await olderTurns(client, sessionId, this.turns[0]?.id ?? first, limit);
      if (this.#first !== first) return; // meanwhile it is another screen
      about();
      this.turns = [...turns, ...this.turns];
      this.#hasMore = this.#count === null ? turns.length >= limit : turns.length > 0 && this.turns.length < this.#count;
    } catch {
      // The button is still there.
    } finally {
      this.loading = false;
      this.#changed();
    }
  }

  async all(client: ArpClient): Promise<void> {
    const MOST_PER_PAGE = 200;
    for (let before = -1; this.#hasMore && before !== this.turns.length; ) {
      before = this.turns.length;
      await this.load(client, MOST_PER_PAGE);
    }
  }
}
