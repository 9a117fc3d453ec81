/** The list of chats. */

import type { ChatSession, SessionAPI } from "@agent-rendering/core";
import { onScopeDispose, shallowRef, watch, type Ref, type ShallowRef } from "vue";

export interface Sessions {
  sessions: Readonly<ShallowRef<ChatSession[]>>;
  sessionsError: Readonly<ShallowRef<Error | null>>;
  loadSessions: () => Promise<void>;
  deleteSession: (id: string) => Promise<void>;
}

/**
 * What a list of chats needs. Nothing here rejects: what went wrong is in `sessionsError`.
 *
 * @param left Called when the chat that is open has been deleted.
 */
export function useSessions(
  api: Readonly<Ref<SessionAPI | null>>,
  open: () => string | null,
  left: () => void,
): Sessions {
  const sessions = shallowRef<ChatSession[]>([]);
  const sessionsError = shallowRef<Error | null>(null);
  /** Counts what was asked for, so that a late answer does not replace a newer one. */
  let round = 0;
  watch(api, () => (round += 1), { flush: "sync" });
  onScopeDispose(() => (round += 1));

  const loadSessions = async () => {
    if (api.value === null) return;
    const ours = ++round;
    try {
      const page = await api.value.page();
      if (ours !== round) return;
      sessions.value = page.sessions;
      sessionsError.value = null;
    } catch (error) {
      if (ours === round) sessionsError.value = error as Error;
    }
  };

  const deleteSession = async (id: string) => {
    if (api.value === null) return;
    try {
      await api.value.remove(id);
    } catch (error) {
      sessionsError.value = error as Error;
      return;
    }
    sessions.value = sessions.value.filter((session) => session.id !== id);
    if (id === open()) left();
  };
  return { sessions, sessionsError, loadSessions, deleteSession };
}
