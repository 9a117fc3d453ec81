/**
 * The list of chats: the loaded pages, the search, and the deletions.
 *
 * Theory of operation. The list is requested page by page, and the server reports changes in between. A page may be
 * older than a change that was reported while the page was on its way. So all changes since the last request of the
 * first page (`#announced`) are applied to each page. Requests are numbered, and only the answer to the newest counts.
 */

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
  /** Changes that were reported since the first page was requested, by chat; `null` means deleted. */
  #announced = new Map<string, ChatRow | null>();

  /**
   * @param changed Called after each change.
   * @param deleted Called when a deletion has ended.
   */
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

  /** Request the first page again. The current rows stay until the answer arrives. */
  async refresh(): Promise<void> {
    this.#request += 1;
    const request = this.#request;
    this.#announced = new Map();
    try {
      const page = await this.#page(null);
      if (request !== this.#request) return; // a newer request replaces this one
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
      // A refresh or another call was faster. Appended now, this page would be out of order or there twice.
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

  /** The rows to draw. Empty chats and chats that wait to be deleted are left out. */
  get shown(): readonly ChatRow[] {
    return this.rows.filter(({ id, message_count: count }) => !this.deletions.has(id) && count > 0);
  }

  async change(id: string, change: { title?: string; pinned?: boolean }): Promise<void> {
    const before = this.rows; // shown again if the server refuses the change
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

  /** Follow changes that are made elsewhere. Return a function that stops it. */
  watch(): () => void {
    void this.refresh();
    const stop = this.#sessions.watch({
      chat: (row) => this.query === "" && this.#announce(row.id, row), // search results stay as they were found
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

/** Group of a chat: pinned, or the time of its last use. */
export type When = "pinned" | "today" | "yesterday" | "lastWeek" | "older";

/** Return the rows grouped by their last use. Groups and their rows are in the order of `rows`: pinned chats first. */
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
