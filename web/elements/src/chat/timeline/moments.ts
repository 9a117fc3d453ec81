/** When turns begin, wait and end, seen by anyone who was there: not what a reload finds done. */

import type { ArpClient, TurnState, TurnStatus } from "@agent-rendering/core";

export class Moments {
  readonly #seen = new Map<string, TurnStatus | null>();
  readonly #happened: (turn: TurnState) => void;
  /** Turns that were cut off while they waited: their end was before the answer that closes them. */
  readonly #left = new Set<string>();
  #isBefore = true;

  constructor(happened: (turn: TurnState) => void) {
    this.#happened = happened;
  }

  clear(): void {
    this.#seen.clear();
    this.#left.clear();
    this.#isBefore = true;
  }

  /** Looks at the newest turns and reports what has changed since the last look. */
  look(client: ArpClient): void {
    const { store } = client;
    if (store.status.get().loading) return;
    for (const id of store.turnIds.get().slice(-RECENT)) {
      const turn = store.turn(id).get();
      if (turn === undefined) continue;
      // A turn is over with its final commit, after the status that says how it ended.
      const isOver = turn.status === "completed" || turn.status === "failed" || turn.status === "cancelled";
      const status = isOver && !turn.final ? (this.#seen.get(id) ?? "running") : turn.status;
      const before = this.#seen.get(id);
      const wasLeft = this.#left.has(id);
      if (status === "waiting" && turn.final) this.#left.add(id);
      if (this.#seen.has(id) && before === status) continue;
      this.#seen.set(id, status);
      if (wasLeft) {
        this.#left.delete(id);
        continue;
      }
      const isKnown = !this.#isBefore;
      if (isKnown || status === "running" || status === "waiting") this.#happened({ ...turn, status });
    }
    this.#isBefore = false;
  }
}

const RECENT = 20;
