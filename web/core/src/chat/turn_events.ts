/** Events when turns begin, wait or end. Turns that had ended before the page was loaded are not reported. */

import type { ArpClient } from "../client/client.js";
import type { Store } from "../client/store.js";
import type { TurnState, TurnStatus } from "../protocol/screen.js";

/** Number of the newest turns to check; older turns do not change their status. */
const RECENT = 20;

/** Reports the turns of a conversation that begin, wait or end. */
export class TurnEvents {
  readonly #seen = new Map<string, TurnStatus | null>();
  readonly #report: (turn: TurnState) => void;
  /** Ids of the turns that were cut off while they waited. A later answer completes them without a new end. */
  readonly #left = new Set<string>();
  /** Whether the turns have not been checked yet since the start or the last `clear`. */
  #isFirstCheck = true;

  /** @param report Called with each turn that has a new status. */
  constructor(report: (turn: TurnState) => void) {
    this.#report = report;
  }

  /** Forget all turns. Of those that the next check finds, only running and waiting ones are reported. */
  clear(): void {
    this.#seen.clear();
    this.#left.clear();
    this.#isFirstCheck = true;
  }

  /** Report the events of a client from now on; return a function that stops it. */
  observe({ store }: ArpClient): () => void {
    return store.subscribe(
      () => this.#check(store),
      (name) => name === "phases" || name === "turns" || name === "status",
    );
  }

  #check(store: Store): void {
    if (store.status.get().loading) return;
    for (const id of store.turnIds.get().slice(-RECENT)) {
      const turn = store.turn(id).get();
      if (turn === undefined) continue;
      // A turn ends with its final commit, which follows the status. Reported earlier, its output would be incomplete.
      const isOver = turn.status === "completed" || turn.status === "failed" || turn.status === "cancelled";
      const before = this.#seen.get(id);
      const status = isOver && !turn.final ? (before ?? "running") : turn.status;
      const wasLeft = this.#left.has(id);
      if (status === "waiting" && turn.final) this.#left.add(id);
      if (this.#seen.has(id) && before === status) continue;
      this.#seen.set(id, status);
      // The user knows of a turn that was cut off while it waited: the answer that completes it is not an event.
      if (wasLeft) this.#left.delete(id);
      else if (!this.#isFirstCheck || status === "running" || status === "waiting") this.#report({ ...turn, status });
    }
    this.#isFirstCheck = false;
  }
}
