/** Turns that the connection did not send, loaded page by page: turns before its first one, and turns in gaps. */

import type { ArpClient } from "../client/client.js";
import type { Status } from "../client/store.js";
import type { TurnState } from "../protocol/screen.js";

/**
 * Number of turns in a page. It is also the number of turns that a connection sends: if the server does not say how
 * many turns are older, a session with fewer turns has no older ones.
 */
export const PAGE_TURNS = 50;
const MOST_PER_PAGE = 200;

/** A gap before a turn, where other turns are left out. */
export class HistoryGap {
  /** Loaded turns of the gap, oldest first. */
  turns: readonly TurnState[] = [];
  loading = false;
  readonly #before: string;
  /** Number of turns in the gap; `null` if the server does not send it. */
  readonly #count: number | null;
  #hasMore: boolean;
  readonly #changed: () => void;

  constructor(before: string, count: number | null, hasMore: boolean, changed: () => void) {
    this.#before = before;
    this.#count = count;
    this.#hasMore = hasMore;
    this.#changed = changed;
  }

  /** Whether there may be more turns to load. */
  get wanted(): boolean {
    return this.#hasMore;
  }

  /**
   * Load one page. After a failure it can be called again.
   *
   * @param about Called when the page has arrived, before it is shown.
   */
  async load(client: ArpClient, limit = PAGE_TURNS, about: () => void = () => undefined): Promise<void> {
    const { sessionId } = client;
    if (this.loading || !this.#hasMore || sessionId === null) return;
    this.loading = true;
    this.#changed();
    const most = this.#count === null ? limit : Math.min(limit, this.#count - this.turns.length);
    try {
      const { olderTurns } = await import("./history_turns.js");
      const turns = await olderTurns(client, sessionId, this.turns[0]?.id ?? this.#before, most);
      about();
      this.turns = [...turns, ...this.turns];
      this.#hasMore = turns.length >= most && this.turns.length < (this.#count ?? Infinity);
    } catch {
      // The gap still has turns to load, so the button stays and the user can try again.
    } finally {
      this.loading = false;
      this.#changed();
    }
  }

  /** Load all turns of the gap; stop at the first page that fails. */
  async all(client: ArpClient): Promise<void> {
    for (let before = -1; this.#hasMore && before !== this.turns.length;) {
      before = this.turns.length;
      await this.load(client, MOST_PER_PAGE);
    }
  }
}

/** The gaps of the displayed conversation. */
export class HistoryPages {
  /** Gap before the first turn of the connection; `null` while there are no turns. */
  top: HistoryGap | null = null;
  #inner: ReadonlyMap<string, HistoryGap> = new Map();
  #first: string | null = null;
  #gaps: Status["gaps"];
  readonly #changed: () => void;

  constructor(changed: () => void) {
    this.#changed = changed;
  }

  /** Return the gap before a turn other than the first. */
  before(id: string): HistoryGap | undefined {
    return this.#inner.get(id);
  }

  /** Return the loaded turns and the results of `turnOf`, in order. */
  among<T>(ids: readonly string[], turnOf: (id: string) => T): (T | TurnState)[] {
    return [...(this.top?.turns ?? []), ...ids.flatMap((id) => [...(this.before(id)?.turns ?? []), turnOf(id)])];
  }

  clear(): void {
    this.check([], {});
  }

  /** Start over if the connection has another first turn or other gaps than at the last call: its screen is new. */
  check(ids: readonly string[], { older = null, gaps }: Pick<Status, "older" | "gaps">): void {
    const first = ids[0] ?? null;
    if (first === this.#first && gaps === this.#gaps) return;
    this.#first = first;
    this.#gaps = gaps;
    const hasOlder = older === null ? ids.length >= PAGE_TURNS : older > 0;
    this.top = first === null ? null : new HistoryGap(first, older, hasOlder, this.#changed);
    this.#inner = new Map(
      Object.entries(gaps ?? {}).map(([id, count]) => [id, new HistoryGap(id, count, count > 0, this.#changed)]),
    );
  }

  /** Load the turns of all gaps. */
  async all(client: ArpClient): Promise<void> {
    for (const gap of [this.top, ...this.#inner.values()]) await gap?.all(client);
  }
}
