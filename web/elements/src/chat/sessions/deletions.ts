/**
 * Chats that were deleted here, until the server has deleted them.
 *
 * Theory of operation. For some seconds a deletion can be undone; then it is sent. From the moment somebody
 * asks for it until the server confirms it, the deletion is in the browser's storage, so that a reload, a crash
 * or a server that is away only delays it. All tabs read that storage: an undo in one tab counts in all.
 */

import type { ArpClient, ArpError, Remainder, Storage } from "@agent-rendering/core";

export const UNDO_MS = 6000;
const RETRY_MS = 20_000;
/** Refusals that may end by themselves: not signed in, too slow, too many requests. */
const PASSING = [401, 408, 429];

/** How a deletion ended: with what is still there of the chat, or with the reason why it is not deleted. */
export interface Deleted {
  readonly id: string;
  readonly remains: readonly Remainder[];
  readonly error: ArpError | null;
}

/** When each deletion is sent, by chat. */
type Due = { readonly [id: string]: number };

export class Deletions {
  readonly #sessions: ArpClient["sessions"];
  readonly #storage: Storage | null;
  readonly #key: string;
  readonly #changed: (deleted: Deleted | null) => void;
  /** Deletions that were asked for on this page; their undo ends with it. */
  readonly #own = new Set<string>();
  readonly #sending = new Set<string>();
  #due: Due = {};
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `changed` is called after each change, with what has ended. */
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

  /** Deletes a chat soon. Those before are sent now: only the last one can be undone. */
  ask(id: string): void {
    this.flush();
    this.#own.add(id);
    this.#set({ ...this.#read(), [id]: Date.now() + UNDO_MS });
  }

  undo(id: string): void {
    this.#forget(id);
  }

  /** Sends at once what was asked for on this page. */
  flush(): void {
    const due = { ...this.#read() };
    for (const id of this.#own) due[id] = Date.now(); // no undo any more: the next page need not wait
    this.#set(due, false);
    for (const id of this.#own) void this.#send(id);
  }

  /** Sends what is due, and the rest when it is; what was left by an earlier page, too. */
  resume = (): void => {
    this.#set(this.#read(), false);
    for (const [id, due] of Object.entries(this.#due)) if (due <= Date.now()) void this.#send(id);
  };

  stop(): void {
    clearTimeout(this.#timer);
    this.flush();
  }

  async #send(id: string): Promise<void> {
    if (this.#sending.has(id)) return;
    this.#sending.add(id);
    try {
      const remains = await this.#sessions.remove(id);
      this.#end({ id, remains, error: null });
    } catch (error) {
      this.#sending.delete(id); // it may be sent again
      const { status } = error as ArpError;
      if (status === 404)
        this.#end({ id, remains: [], error: null }); // deleted already
      else if (status >= 400 && status < 500 && !PASSING.includes(status))
        this.#end({ id, remains: [], error: error as ArpError });
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
    if (this.#storage === null) return this.#due; // they last until the page is closed
    try {
      return JSON.parse(this.#storage.getItem(this.#key) ?? "{}") as Due;
    } catch {
      return this.#due; // forbidden, or not written by us
    }
  }

  #write(due: Due): void {
    try {
      if (Object.keys(due).length === 0) this.#storage?.removeItem(this.#key);
      else this.#storage?.setItem(this.#key, JSON.stringify(due));
    } catch {
      // Full or forbidden.
    }
  }
}
