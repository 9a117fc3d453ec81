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
 * Return the list of chats and its actions. The actions never reject; an error is in `sessionsError`.
 *
 * @param open Returns the id of the open chat.
 * @param onOpenDeleted Called when the open chat was deleted.
 */
export function useSessions(
  api: Readonly<Ref<SessionAPI | null>>,
  open: () => string | null,
  onOpenDeleted: () => void,
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
      if ((await list.delete(api.value, id)) && id === open()) onOpenDeleted();
    },
  };
}
