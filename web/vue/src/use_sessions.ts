/** The list of chats. */

import type { ChatSession, SessionAPI } from "@agent-rendering/core";
import { computed, onScopeDispose, watch, type Ref } from "vue";
import { SessionList, type SessionActions } from "../../bindings/src/session_list.js";
import { useCell } from "./cell.js";

export interface Sessions extends SessionActions {
  sessions: Readonly<Ref<ChatSession[]>>;
  sessionsError: Readonly<Ref<Error | null>>;
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
  const list = new SessionList();
  const loaded = useCell(list.cell);
  watch(api, () => list.ignorePending(), { flush: "sync" });
  onScopeDispose(() => list.ignorePending());
  return {
    sessions: computed(() => loaded.value.sessions),
    sessionsError: computed(() => loaded.value.error),
    loadSessions: () => list.load(api.value),
    deleteSession: async (id) => {
      if ((await list.delete(api.value, id)) && id === open()) left();
    },
  };
}
