/**
 * Deletions of chats, from the reader's request until the server has deleted the chat.
 *
 * Theory of operation. A deletion can be undone for a few seconds; then it is sent. From the request until the server
 * confirms it, the deletion is in the browser's storage, so a reload, a crash or an unreachable server only delays it.
 * All tabs share that storage: an undo in one tab is valid in all of them. Therefore the storage is read again before
 * each change.
 */

import type { ArpClient, ArpError, Remainder, Storage } from "@agent-rendering/core";

export const UNDO_MS = 6000;
const RETRY_MS = 20_000;
/** Refusals that are retried: not signed in, too slow, too many requests. */
const PASSING = [401, 408, 429];

/** Result of a deletion. */
export interface Deleted {
  readonly id: string;
  /** Data of the chat that still exists elsewhere. */
  readonly remains: readonly Remainder[];
  /** Reason why the chat was not deleted; `null` if it was. */
  readonly error: ArpError | null;
}

/** Time at which each deletion is sent, in ms since the epoch, by chat. */
type Due = { readonly [id: string]: number };

export class Deletions {
  readonly #sessions: ArpClient["sessions"];
  readonly #storage: Storage | null;
  readonly #key: string;
  readonly #changed: (deleted: Deleted | null) => void;
  /** Chats whose deletion was requested on this page. Their undo ends when the page is left. */
  readonly #own = new Set<string>();
  readonly #sending = new Set<string>();
  #due: Due = {};
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** @param changed Called after each change, with the deletion that has ended, if one has. */
  constructor({ sessions, address }: ArpClient, storage: Storage | null, changed: (deleted: Deleted | null) => void) {
    this.#sessions = sessions;
    this.#storage = storage;
    this.#key = `arp.deleting.${address.base}`;
    this.#changed = changed;
    this.resume();
  }

  has(id: string): boolean {
    return Object.hasOwn(this.#due, id);
  }

  /** Delete a chat after the time for an undo. Earlier deletions are sent now: only the last one can be undone. */
  ask(id: string): void {
    this.flush();
    this.#own.add(id);
    this.#set({ ...this.#read(), [id]: Date.now() + UNDO_MS });
  }

  undo(id: string): void {
    this.#forget(id);
  }

  /** Send the deletions of this page at once. */
  flush(): void {
    const due = { ...this.#read() };
    for (const id of this.#own) due[id] = Date.now(); // if this page is closed first, the next one sends them at once
    this.#set(due, false);
    for (const id of this.#own) void this.#send(id);
  }

  /** Send all deletions that are due, also those of earlier pages, and set a timer for the others. */
  resume = (): void => {
    this.#set(this.#read(), false);
    for (const [id, due] of Object.entries(this.#due)) if (due <= Date.now()) void this.#send(id);
  };

  stop(): void {
    clearTimeout(this.#timer);
    this.flush();
  }

  async #send(id: string): Promise<void> {
    if (this.#sending.has(id)) return; // a timer and a `flush` may both ask for it
    this.#sending.add(id);
    try {
      const remains = await this.#sessions.remove(id);
      this.#end({ id, remains, error: null });
    } catch (error) {
      this.#sending.delete(id); // otherwise `#set` below would set no timer for the retry
      const { status } = error as ArpError;
      if (status === 404)
        this.#end({ id, remains: [], error: null }); // it was deleted before
      else if (status >= 400 && status < 500 && !PASSING.includes(status))
        this.#end({ id, remains: [], error: error as ArpError });
      // The network or the server failed: try later, unless the deletion was undone meanwhile.
      else if (this.has(id)) this.#set({ ...this.#read(), [id]: Date.now() + RETRY_MS }, false);
    } finally {
      this.#sending.delete(id);
    }
  }

  #end(deleted: Deleted): void {
    this.#forget(deleted.id, deleted);
  }

  #forget(id: string, deleted: Deleted | null = null): void {
    this.#own.delete(id);
    const { [id]: _, ...rest } = this.#read();
    this.#set(rest, true, deleted);
  }

  #set(due: Due, isNews = true, deleted: Deleted | null = null): void {
    this.#due = due;
    this.#write(due);
    clearTimeout(this.#timer);
    const times = Object.entries(due)
      .filter(([id]) => !this.#sending.has(id))
      .map(([, time]) => time);
    if (times.length > 0) this.#timer = setTimeout(this.resume, Math.max(0, Math.min(...times) - Date.now()));
    if (isNews) this.#changed(deleted);
  }

  #read(): Due {
    if (this.#storage === null) return this.#due; // without a storage they last until the page is closed
    try {
      return JSON.parse(this.#storage.getItem(this.#key) ?? "{}") as Due;
    } catch {
      return this.#due; // the storage is forbidden, or its value is not ours
    }
  }

  #write(due: Due): void {
    try {
      if (Object.keys(due).length === 0) this.#storage?.removeItem(this.#key);
      else this.#storage?.setItem(this.#key, JSON.stringify(due));
    } catch {
      // The storage is full or forbidden: the deletions last until the page is closed.
    }
  }
}
