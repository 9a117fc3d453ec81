/** Drafts: texts that were written and not sent, by session. They survive a reload and a change of the session. */

import type { Storage } from "@agent-rendering/core";

export class Drafts {
  readonly #storage: Storage | null;
  readonly #prefix: string;
  /** Drafts of this tab. Other tabs have their own; without a storage they last until the reload. */
  readonly #here = new Map<string | null, string>();

  /** @param prefix Distinguishes servers that share a storage. */
  constructor(storage: Storage | null, prefix: string) {
    this.#storage = storage;
    this.#prefix = `arp.draft.${prefix}.`;
  }

  read(sessionId: string | null): string {
    const here = this.#here.get(sessionId);
    if (here !== undefined) return here;
    try {
      return this.#storage?.getItem(this.#prefix + (sessionId ?? "")) ?? "";
    } catch {
      return "";
    }
  }

  write(sessionId: string | null, text: string): void {
    this.#here.set(sessionId, text);
    try {
      if (text === "") this.#storage?.removeItem(this.#prefix + (sessionId ?? ""));
      else this.#storage?.setItem(this.#prefix + (sessionId ?? ""), text);
    } catch {
      // The storage is full or forbidden: the draft lasts until the reload.
    }
  }

  /** Move the draft of the session without an id to the id that it has got. */
  name(sessionId: string): void {
    this.write(sessionId, this.read(null));
    this.write(null, "");
  }
}

/** Return the browser's storage; `null` if it does not exist or is forbidden. */
export function browserStorage(): Storage | null {
  try {
    return (globalThis as { localStorage?: Storage }).localStorage ?? null;
  } catch {
    return null;
  }
}
