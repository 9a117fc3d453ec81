/** The list of chats. */

import type { ChatSession, SessionAPI } from "@agent-rendering/core";
import { useCallback, useEffect, useState } from "react";
import { NO_SESSIONS, SessionList, type SessionActions } from "../../bindings/src/session_list.js";
import { useCell } from "./cell.js";

export interface Sessions extends SessionActions {
  sessions: ChatSession[];
  sessionsError: Error | null;
}

/**
 * Return the list of chats and its actions. The actions never reject; an error is in `sessionsError`.
 *
 * @param open Id of the open chat.
 * @param onOpenDeleted Called when the open chat was deleted.
 */
export function useSessions(api: SessionAPI | null, open: string | null, onOpenDeleted: () => void): Sessions {
  const [list] = useState(() => new SessionList());
  const { sessions, error } = useCell(list.cell, NO_SESSIONS);
  useEffect(() => () => list.ignorePending(), [list, api]);
  const loadSessions = useCallback(() => list.load(api), [list, api]);
  const deleteSession = useCallback(
    async (id: string) => {
      if ((await list.delete(api, id)) && id === open) onOpenDeleted();
    },
    [list, api, open, onOpenDeleted],
  );
  return { sessions, sessionsError: error, loadSessions, deleteSession };
}
