/** The list of chats as it is known here: pages of it, what is searched for, and what waits to be deleted. */

import type { ArpClient, ChatRow, SessionAPI, Storage } from "@agent-rendering/core";

import { Deletions, type Deleted } from "./deletions.js";

export type { ChatRow };

export type ListState = "loading" | "ready" | "failed";

const PAGE = 40;

export class ChatList {
  rows: readonly ChatRow[] = [];
  state: ListState = "loading";
  next: string | null = null;
  query = "";
  readonly #sessions: SessionAPI;
  readonly #changed: () => void;
  readonly deletions: Deletions;
  #request = 0;
  /** Changes reported since the newest page was requested, which may be older; `null`: it is gone. */
  #announced = new Map<string, ChatRow | null>();

  /** `changed` is called after each change; `deleted` when a deletion has ended. */
  constructor(
    client: ArpClient,
    changed: () => void,
    storage: Storage | null = null,
    deleted: (how: Deleted) => void = () => undefined,
  ) {
    this.#sessions = client.sessions;
    this.#changed = changed;
    this.deletions = new Deletions(client, storage, (how) => {
      if (how?.error === null) this.rows = this.rows.filter(({ id }) => id !== how.id);
      if (how !== null) deleted(how);
      changed();
    });
  }

  /** Asks for the first page again. What shows stays until the answer is there. */
  async refresh(): Promise<void> {
    this.#request += 1;
    const request = this.#request;
    this.#announced = new Map();
    try {
      const page = await this.#page(null);
      if (request !== this.#request) return; // something newer was asked for
      this.rows = this.#withAnnounced(page.sessions);
      this.next = page.next;
      this.state = "ready";
    } catch {
      if (request !== this.#request) return;
      this.state = "failed";
    }
    this.#changed();
  }

  async more(): Promise<void> {
    const { next } = this;
    const request = this.#request;
    if (next === null) return;
    try {
      const page = await this.#page(next);
      if (request !== this.#request || next !== this.next) return;
      const known = new Set(this.rows.map(({ id }) => id));
      this.rows = this.#withAnnounced([...this.rows, ...page.sessions.filter(({ id }) => !known.has(id))]);
      this.next = page.next;
    } catch {
      this.state = "failed";
    }
    this.#changed();
  }

  search(query: string): Promise<void> {
    this.query = query;
    return this.refresh();
  }

  /** The rows that show: an empty chat is none. */
  get shown(): readonly ChatRow[] {
    return this.rows.filter(({ id, message_count: count }) => !this.deletions.has(id) && count > 0);
  }

  async change(id: string, change: { title?: string; pinned?: boolean }): Promise<void> {
    const before = this.rows;
    this.rows = this.rows.map((row) => (row.id === id ? { ...row, ...change } : row));
    this.#changed();
    try {
      await this.#sessions.update(id, change);
    } catch (error) {
      this.rows = before;
      this.#changed();
      throw error;
    }
    await this.refresh();
  }

  /** Follows what changes elsewhere; returns a function that stops it. */
  watch(): () => void {
    void this.refresh();
    const stop = this.#sessions.watch({
      chat: (row) => this.query === "" && this.#announce(row.id, row), // what is found is what was found
      removed: (id) => this.#announce(id, null),
      opened: () => {
        this.deletions.resume();
        void this.refresh();
      },
    });
    return () => {
      stop();
      this.deletions.stop();
    };
  }

  #announce(id: string, row: ChatRow | null): void {
    this.#announced.set(id, row);
    this.rows = this.#withAnnounced(this.rows);
    this.#changed();
  }

  #withAnnounced(rows: readonly ChatRow[]): readonly ChatRow[] {
    const announced = [...this.#announced.values()].filter((row) => row !== null);
    const rest = rows.filter(({ id }) => !this.#announced.has(id));
    return announced.length === 0 ? rest : [...announced, ...rest].sort(byPlace);
  }

  #page(before: string | null): Promise<{ sessions: ChatRow[]; next: string | null }> {
    const { query } = this;
    return this.#sessions.page({ limit: PAGE, ...(before !== null && { before }), ...(query !== "" && { query }) });
  }
}

function byPlace(one: ChatRow, other: ChatRow): number {
  const pins = Number(other.pinned ?? false) - Number(one.pinned ?? false);
  return pins || (other.updated_at < one.updated_at ? -1 : other.updated_at > one.updated_at ? 1 : 0);
}

/** Words for when a chat was last used. */
export type When = "pinned" | "today" | "yesterday" | "lastWeek" | "older";

/** The rows by when they were last used, pinned ones first; in their order. */
export function byDay(rows: readonly ChatRow[], now: Date): Map<When, ChatRow[]> {
  const midnight = new Date(now.getFullYear(), now.getMonth(), now.getDate()).getTime();
  const DAY_MS = 86_400_000;
  const whenOf = ({ pinned, updated_at: at }: ChatRow): When => {
    if (pinned) return "pinned";
    const time = Date.parse(at);
    if (time >= midnight) return "today";
    if (time >= midnight - DAY_MS) return "yesterday";
    return time >= midnight - 7 * DAY_MS ? "lastWeek" : "older";
  };
  const groups = new Map<When, ChatRow[]>();
  for (const row of rows) groups.set(whenOf(row), [...(groups.get(whenOf(row)) ?? []), row]);
  return groups;
}
