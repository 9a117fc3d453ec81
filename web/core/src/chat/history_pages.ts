/** Turns that the connection did not send, loaded page by page: those before its first, and those of gaps. */

import type { ArpClient } from "../client/client.js";
import type { Status } from "../client/store.js";
import type { TurnState } from "../protocol/screen.js";

/** One page of older turns; as many as the connection sends, of a server that does not say how many are older. */
export const PAGE_TURNS = 50;
const MOST_PER_PAGE = 200;

/** A place before a turn where others are left out. */
export class HistoryGap {
  /** Those that were loaded, oldest first. */
  turns: readonly TurnState[] = [];
  loading = false;
  readonly #before: string;
  /** How many there are; `null` where the server does not say. */
  readonly #count: number | null;
  #hasMore: boolean;
  readonly #changed: () => void;

  constructor(before: string, count: number | null, hasMore: boolean, changed: () => void) {
    this.#before = before;
    this.#count = count;
    this.#hasMore = hasMore;
    this.#changed = changed;
  }

  /** Whether there may be more. */
  get wanted(): boolean {
    return this.#hasMore;
  }

  /**
   * Loads one page; what fails may be asked for again.
   *
   * @param about Is called when it is there, before it shows.
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
      // The button is still there.
    } finally {
      this.loading = false;
      this.#changed();
    }
  }

  async all(client: ArpClient): Promise<void> {
    for (let before = -1; this.#hasMore && before !== this.turns.length;) {
      before = this.turns.length;
      await this.load(client, MOST_PER_PAGE);
    }
  }
}

/** The gaps of the conversation that shows. */
export class HistoryPages {
  /** Before the first turn of the connection; `null` while there is none. */
  top: HistoryGap | null = null;
  #inner: ReadonlyMap<string, HistoryGap> = new Map();
  #first: string | null = null;
  #gaps: Status["gaps"];
  readonly #changed: () => void;

  constructor(changed: () => void) {
    this.#changed = changed;
  }

  /** The gap before a turn that is not the first. */
  before(id: string): HistoryGap | undefined {
    return this.#inner.get(id);
  }

  /** What was loaded and what `turnOf` returns, in order. */
  among<T>(ids: readonly string[], turnOf: (id: string) => T): (T | TurnState)[] {
    return [...(this.top?.turns ?? []), ...ids.flatMap((id) => [...(this.before(id)?.turns ?? []), turnOf(id)])];
  }

  clear(): void {
    this.check([], {});
  }

  /** Looks at the turns of the connection: with another first one, or other gaps, it is another screen. */
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

  async all(client: ArpClient): Promise<void> {
    for (const gap of [this.top, ...this.#inner.values()]) await gap?.all(client);
  }
}
