/** When turns begin, wait and end, for whoever is there: what a reload finds done is not reported. */

import type { ArpClient } from "../client/client.js";
import type { Store } from "../client/store.js";
import type { TurnState, TurnStatus } from "../protocol/screen.js";

/** Only the newest turns change their status. */
const RECENT = 20;

/** Reports the turns of a conversation that begin, wait or end. */
export class TurnEvents {
  readonly #seen = new Map<string, TurnStatus | null>();
  readonly #report: (turn: TurnState) => void;
  /** Turns that were cut off while they waited: their end was before the answer that closes them. */
  readonly #left = new Set<string>();
  #isBefore = true;

  /** @param report Called with a turn that has another status now. */
  constructor(report: (turn: TurnState) => void) {
    this.#report = report;
  }

  /** Forgets all turns: those that the next look finds are not news, unless they run or wait. */
  clear(): void {
    this.#seen.clear();
    this.#left.clear();
    this.#isBefore = true;
  }

  /** Reports what happens on a client from now on; returns a function that stops it. */
  observe({ store }: ArpClient): () => void {
    return store.subscribe(
      () => this.#look(store),
      (name) => name === "phases" || name === "turns" || name === "status",
    );
  }

  #look(store: Store): void {
    if (store.status.get().loading) return;
    for (const id of store.turnIds.get().slice(-RECENT)) {
      const turn = store.turn(id).get();
      if (turn === undefined) continue;
      // A turn is over with its final commit, after the status that says how it ended.
      const isOver = turn.status === "completed" || turn.status === "failed" || turn.status === "cancelled";
      const before = this.#seen.get(id);
      const status = isOver && !turn.final ? (before ?? "running") : turn.status;
      const wasLeft = this.#left.has(id);
      if (status === "waiting" && turn.final) this.#left.add(id);
      if (this.#seen.has(id) && before === status) continue;
      this.#seen.set(id, status);
      // The end of a turn that was left was before; the answer that closes it is no news.
      if (wasLeft) this.#left.delete(id);
      else if (!this.#isBefore || status === "running" || status === "waiting") this.#report({ ...turn, status });
    }
    this.#isBefore = false;
  }
}
