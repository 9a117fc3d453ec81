/** The list of chats. */

import type { ChatSession, SessionAPI } from "@agent-rendering/core";
import { onScopeDispose, watch, type Ref, type ShallowRef } from "vue";
import { SessionList, type SessionActions } from "../../bindings/src/session_list.js";
import { useCell } from "./cell.js";

export interface Sessions extends SessionActions {
  sessions: Readonly<ShallowRef<ChatSession[]>>;
  sessionsError: Readonly<ShallowRef<Error | null>>;
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
  const { get, subscribe } = list.cell;
  watch(api, () => list.ignorePending(), { flush: "sync" });
  onScopeDispose(() => list.ignorePending());
  return {
    sessions: useCell({ get: () => get().sessions, subscribe }),
    sessionsError: useCell({ get: () => get().error, subscribe }),
    loadSessions: () => list.load(api.value),
    deleteSession: async (id) => {
      if ((await list.delete(api.value, id)) && id === open()) left();
    },
  };
}
