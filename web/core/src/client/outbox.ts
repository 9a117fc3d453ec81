/**
 * Inputs that the agent side has not echoed yet, kept over a reload.
 *
 * Theory of operation. Each input has one id for its whole life and is sent again with it after
 * every reconnect, so it takes effect once. An item goes waiting → sent → accepted and leaves when
 * its echo comes; a lost connection puts `sent` back to `waiting`; a refusal keeps it as `refused`
 * until somebody decides. What is not accepted survives a reload, except files. Source:
 * protocol.md 2.2.
 */

import { SILENT } from "../protocol/answers.js";
import type { ErrorPayload, Input } from "../protocol/generated/wire.js";

export type SendPhase = "waiting" | "sent" | "accepted" | "refused";

/** A file that goes with an input; `part` is `file`, or `fields.NAME` for a field of a form. */
export interface Attachment {
  readonly part: string;
  readonly file: File;
}

/** One input on its way. */
export interface Outgoing {
  readonly id: string;
  readonly message: Input;
  readonly files: readonly Attachment[];
  readonly phase: SendPhase;
  /** Of its files, from 0 to 1. */
  readonly progress: number;
  readonly error: ErrorPayload | null;
}

/** The part of Web Storage that is used. */
export interface Storage {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

/** Returns the answer to a component that is on its way: on the named surface, or on any. */
export function answerTo(items: readonly Outgoing[], componentId: string, surface?: string): Outgoing | undefined {
  return items.find(
    ({ message, phase }) =>
      message.source_component === componentId &&
      message.surface === (surface ?? message.surface) &&
      phase !== "refused",
  );
}

/** The inputs of one session. */
export class Outbox {
  /** Oldest first; a new array at each change. */
  items: readonly Outgoing[] = [];
  readonly #storage: Storage | null;
  readonly #prefix: string;
  readonly #changed: () => void;
  #key: string;

  /** `prefix` distinguishes servers; `changed` is called after each change. */
  constructor(storage: Storage | null, prefix: string, changed: () => void) {
    this.#storage = storage;
    this.#prefix = `arp.outbox.${prefix}.`;
    this.#changed = changed;
    this.#key = this.#prefix;
  }

  /**
   * Takes the inputs that are kept for a session.
   *
   * @param sessionId `null` = one that the server has not named yet.
   * @param isNamed Whether the server named it: what had no session yet moves to it.
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

  /** The item with this id, if it is still here. */
  get(id: string): Outgoing | undefined {
    return this.items.find((item) => item.id === id);
  }

  /** Adds an input at the end. */
  add(id: string, message: Input, files: readonly Attachment[] = []): void {
    this.#set([...this.items, { id, message, files, phase: "waiting", progress: 0, error: null }]);
  }

  /** The items to send now, oldest first; they count as sent. */
  takeWaiting(): readonly Outgoing[] {
    const waiting = this.items.filter(({ phase }) => phase === "waiting");
    if (waiting.length > 0) {
      this.#set(this.items.map((item) => (item.phase === "waiting" ? { ...item, phase: "sent" } : item)));
    }
    return waiting;
  }

  /** After a lost connection: what was sent without an answer waits again. */
  rewind(): void {
    this.#set(
      this.items.map((item) =>
        item.phase === "sent" && item.files.length === 0 ? { ...item, phase: "waiting" } : item,
      ),
    );
  }

  /** The agent side has it. */
  accepted(id: string): void {
    const item = this.get(id);
    if (item === undefined) return;
    const { input_type, data } = item.message;
    const isSilent = SILENT.includes(input_type) || String(data.action).startsWith("arp.");
    if (isSilent) this.remove(id);
    else this.change(id, { phase: "accepted", progress: 1 });
  }

  /** Changes an item, if it is here. */
  change(id: string, change: Partial<Outgoing>): void {
    if (this.get(id) === undefined) return;
    this.#set(this.items.map((item) => (item.id === id ? { ...item, ...change } : item)));
  }

  /** Removes an item: its echo has come, or the user discarded it. */
  remove(id: string): void {
    if (this.get(id) !== undefined) this.#set(this.items.filter((item) => item.id !== id));
  }

  /** After a snapshot: what was accepted before is in it, or is too old to show. */
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
      // Full or forbidden: what is here lasts until the reload.
    }
  }

  /** What was kept; whatever was sent before the reload is sent again. */
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
