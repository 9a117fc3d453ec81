/** The list of chats. */

import type { Cell, ChatSession, SessionAPI } from "@agent-rendering/core";

export interface LoadedSessions {
  readonly sessions: ChatSession[];
  /** Error of the last load or deletion, if it failed. */
  readonly error: Error | null;
}

export const NO_SESSIONS: LoadedSessions = { sessions: [], error: null };

export interface SessionActions {
  loadSessions: () => Promise<void>;
  deleteSession: (id: string) => Promise<void>;
}

/** A list of chats. Its methods never reject; an error is in the cell. */
export class SessionList {
  readonly cell: Cell<LoadedSessions>;
  #loaded = NO_SESSIONS;
  #request = 0;
  readonly #listeners = new Set<() => void>();

  constructor() {
    this.cell = {
      get: () => this.#loaded,
      subscribe: (listener) => {
        this.#listeners.add(listener);
        return () => void this.#listeners.delete(listener);
      },
    };
  }

  /** Load the list. Without an API do nothing. */
  async load(api: SessionAPI | null): Promise<void> {
    if (api === null) return;
    const request = ++this.#request;
    try {
      const page = await api.page();
      // A late answer must not replace the answer to a newer request.
      if (request === this.#request) this.#set({ sessions: page.sessions, error: null });
    } catch (error) {
      if (request === this.#request) this.#set({ ...this.#loaded, error: error as Error });
    }
  }

  /** Delete a chat; return whether the server deleted it. */
  async delete(api: SessionAPI | null, id: string): Promise<boolean> {
    if (api === null) return false;
    try {
      await api.remove(id);
    } catch (error) {
      this.#set({ ...this.#loaded, error: error as Error });
      return false;
    }
    const sessions = this.#loaded.sessions.filter((session) => session.id !== id);
    this.#set({ ...this.#loaded, sessions });
    return true;
  }

  /** Ignore the answer to the current request. */
  ignorePending(): void {
    this.#request += 1;
  }

  #set(loaded: LoadedSessions): void {
    this.#loaded = loaded;
    for (const listener of this.#listeners) listener();
  }
}
