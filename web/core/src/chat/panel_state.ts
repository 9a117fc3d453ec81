/**
 * Whether a side panel is closed, and what on it is new to the user.
 *
 * Theory of operation. A closed panel opens by itself when it gets something that it did not contain when it was
 * closed: a component with another id, or a question. A component that only changes, such as a progress bar, leaves it
 * closed. The state is kept in a storage for one session, so that it survives a reload.
 */

import type { Storage } from "../client/outbox.js";
import { idsIn, type PanelContent } from "./panel.js";

/** Key in the storage for the session with the closed panel, and for the ids that the user had seen on it. */
const KEY = "arp.side-closed";

export class PanelState {
  #content: PanelContent = { sessionId: null, surfaces: [] };
  #isClosed = false;
  /** Ids of everything that the user has seen, as `idsIn` returns them. */
  #seen: ReadonlySet<string> = new Set();
  #shown: ReadonlySet<string> = new Set();
  readonly #storage: () => Storage | null;

  /** @param storage Returns where the state is kept, `null` for nowhere. It may throw if storing is forbidden. */
  constructor(storage: () => Storage | null = () => null) {
    this.#storage = storage;
  }

  get content(): PanelContent {
    return this.#content;
  }

  /** Whether the user closed the panel, and nothing new has come since. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Whether something came that the user has not seen. */
  get hasNews(): boolean {
    return [...this.#shown].some((id) => !this.#seen.has(id));
  }

  /** Whether a question on the panel waits for an answer. */
  get asks(): boolean {
    return [...this.#shown].some((id) => id.endsWith("?"));
  }

  /** Receive what the panel shows now. Returns whether it is the panel of another session. */
  update(content: PanelContent): boolean {
    const before = this.#content;
    const { sessionId } = content;
    // A session without an id is still the same one when the server names it.
    const isNamed = before.sessionId === null && sessionId !== null && before.surfaces.length > 0;
    const isOther = sessionId !== before.sessionId && !isNamed;
    this.#content = content;
    if (isOther) this.#restore(sessionId);
    this.#shown = idsIn(content);
    if (this.#isClosed && this.hasNews) this.open();
    return isOther;
  }

  /** Record that everything on the panel is in view. */
  see(): void {
    this.#seen = this.#shown;
  }

  open(): void {
    this.#isClosed = false;
    this.#keep();
  }

  /** Close the panel until something new comes. */
  close(): void {
    this.#isClosed = true;
    this.see();
    this.#keep();
  }

  /** Restore whether the panel of a session was closed, and what had been seen then. */
  #restore(sessionId: string | null): void {
    this.#isClosed = false;
    this.#seen = new Set();
    try {
      const kept = JSON.parse(this.#storage()?.getItem(KEY) ?? "null") as { session: string; seen: string[] } | null;
      if (kept === null || kept.session !== sessionId) return;
      this.#seen = new Set(kept.seen);
      this.#isClosed = true;
    } catch {
      // Storing is forbidden, or another program wrote the value.
    }
  }

  #keep(): void {
    try {
      const storage = this.#storage();
      const { sessionId } = this.#content;
      if (this.#isClosed) storage?.setItem(KEY, JSON.stringify({ session: sessionId, seen: [...this.#seen] }));
      else storage?.removeItem(KEY);
    } catch {
      // The storage is full or forbidden: the state lasts until the reload.
    }
  }
}
