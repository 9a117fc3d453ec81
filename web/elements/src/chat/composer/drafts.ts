/** What is written and not sent, by session, over a reload and a change of the session. */

import type { Storage } from "@agent-rendering/core";

export class Drafts {
  readonly #storage: Storage | null;
  readonly #prefix: string;
  /** What was written here: of several tabs each has its own, and where nothing is stored it lasts until the reload. */
  readonly #here = new Map<string | null, string>();

  /** `prefix` distinguishes servers. */
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
      // Full or forbidden.
    }
  }

  /** The chat without a name has got one. */
  name(sessionId: string): void {
    this.write(sessionId, this.read(null));
    this.write(null, "");
  }
}

/** The browser's storage; `null` where there is none or it is forbidden. */
export function browserStorage(): Storage | null {
  try {
    return (globalThis as { localStorage?: Storage }).localStorage ?? null;
  } catch {
    return null;
  }
}
