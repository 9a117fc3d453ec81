/**
 * Inputs that the agent side has not echoed yet. They survive a reload.
 *
 * Theory of operation. Each input keeps one id. It is sent again with the same id after every reconnect, so it
 * takes effect once. The phase of an item changes from `waiting` to `sent` to `accepted`, and the echo removes
 * the item. A lost connection changes `sent` back to `waiting`. A refused item stays as `refused` until the
 * user resends or discards it. Items that are not accepted survive a reload, except those with files.
 * Source: protocol.md 2.2.
 */

import { SILENT } from "../protocol/answers.js";
import type { ErrorPayload, Input } from "../protocol/generated/wire.js";

export type SendPhase = "waiting" | "sent" | "accepted" | "refused";

/** A file of an input; `part` is `file`, or `fields.NAME` for a field of a form. */
export interface Attachment {
  readonly part: string;
  readonly file: File;
}

/** One input that is not echoed yet. */
export interface Outgoing {
  readonly id: string;
  readonly message: Input;
  readonly files: readonly Attachment[];
  readonly phase: SendPhase;
  /** Uploaded part of its files, from 0 to 1. */
  readonly progress: number;
  readonly error: ErrorPayload | null;
}

/** The used part of the Web Storage interface. */
export interface Storage {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

/** Return the unacknowledged answer to a component, on the named surface or on any. */
export function answerTo(items: readonly Outgoing[], componentId: string, surface?: string): Outgoing | undefined {
  return items.find(
    ({ message, phase }) =>
      message.source_component === componentId &&
      message.surface === (surface ?? message.surface) &&
      phase !== "refused",
  );
}

/** Outgoing inputs of one session. */
export class Outbox {
  /** Items, oldest first; a new array after each change. */
  items: readonly Outgoing[] = [];
  readonly #storage: Storage | null;
  readonly #prefix: string;
  readonly #changed: () => void;
  #key: string;

  /**
   * @param prefix Distinguishes servers in the storage.
   * @param changed Called after each change.
   */
  constructor(storage: Storage | null, prefix: string, changed: () => void) {
    this.#storage = storage;
    this.#prefix = `arp.outbox.${prefix}.`;
    this.#changed = changed;
    this.#key = this.#prefix;
  }

  /**
   * Switch to the stored inputs of a session.
   *
   * @param sessionId Id of the session; `null` until the server has named it.
   * @param isNamed Whether the server has just named the session. Inputs without a session then move to it.
   */
  open(sessionId: string | null, isNamed: boolean): void {
    const key = this.#prefix + (sessionId ?? "");
    if (key === this.#key && this.items.length > 0) return;
    const here = isNamed && this.#key === this.#prefix ? this.items : [];
    if (here.length > 0) this.#write([]);
    this.#key = key;
    const kept = this.#read().filter(({ id }) => !here.some((item) => item.id === id));
    this.#set([...kept, ...here]);
  }

  /** Return the item with this id, if there is one. */
  get(id: string): Outgoing | undefined {
    return this.items.find((item) => item.id === id);
  }

  /** Add an input at the end. */
  add(id: string, message: Input, files: readonly Attachment[] = []): void {
    this.#set([...this.items, { id, message, files, phase: "waiting", progress: 0, error: null }]);
  }

  /** Return the items to send now, oldest first, and mark them as sent. */
  takeWaiting(): readonly Outgoing[] {
    const waiting = this.items.filter(({ phase }) => phase === "waiting");
    if (waiting.length > 0) {
      this.#set(this.items.map((item) => (item.phase === "waiting" ? { ...item, phase: "sent" } : item)));
    }
    return waiting;
  }

  /** Mark sent items without an answer as waiting again, after a lost connection. */
  rewind(): void {
    // Files go over HTTP, independently of this connection: `client.ts` retries the upload itself.
    this.#set(
      this.items.map((item) =>
        item.phase === "sent" && item.files.length === 0 ? { ...item, phase: "waiting" } : item,
      ),
    );
  }

  /** Record that the agent side has stored an input. */
  accepted(id: string): void {
    const item = this.get(id);
    if (item === undefined) return;
    const { input_type, data } = item.message;
    // These inputs are never echoed: as accepted items they would stay for ever.
    const isSilent = SILENT.includes(input_type) || String(data.action).startsWith("arp.");
    if (isSilent) this.remove(id);
    else this.change(id, { phase: "accepted", progress: 1 });
  }

  /** Change an item, if it exists. */
  change(id: string, change: Partial<Outgoing>): void {
    if (this.get(id) === undefined) return;
    this.#set(this.items.map((item) => (item.id === id ? { ...item, ...change } : item)));
  }

  /** Remove an item, because its echo has arrived or the user has discarded it. */
  remove(id: string): void {
    if (this.get(id) !== undefined) this.#set(this.items.filter((item) => item.id !== id));
  }

  /** Remove the accepted items after a snapshot. It contains them, or they are older than its first turn. */
  dropAccepted(): void {
    this.#set(this.items.filter(({ phase }) => phase !== "accepted"));
  }

  #set(items: readonly Outgoing[]): void {
    this.items = items;
    this.#write(items.filter(({ phase, files }) => phase !== "accepted" && files.length === 0));
    this.#changed();
  }

  #write(kept: readonly Outgoing[]): void {
    try {
      if (kept.length > 0) this.#storage?.setItem(this.#key, JSON.stringify(kept));
      else this.#storage?.removeItem(this.#key);
    } catch {
      // The storage is full or forbidden: the items last until the page is reloaded.
    }
  }

  /** Return the stored items. Items that were sent before the reload are waiting again. */
  #read(): Outgoing[] {
    try {
      const kept = JSON.parse(this.#storage?.getItem(this.#key) ?? "[]") as Outgoing[];
      return kept
        .filter(({ id, message }) => typeof id === "string" && message.type === "input")
        .map((item) => ({ ...item, phase: item.phase === "refused" ? "refused" : "waiting" }));
    } catch {
      return [];
    }
  }
}
