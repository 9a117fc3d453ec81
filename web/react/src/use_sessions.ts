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
 * What a list of chats needs. Nothing here rejects: what went wrong is in `sessionsError`.
 *
 * @param left Called when the chat that is open has been deleted.
 */
export function useSessions(api: SessionAPI | null, open: string | null, left: () => void): Sessions {
  const [list] = useState(() => new SessionList());
  const { sessions, error } = useCell(list.cell, NO_SESSIONS);
  useEffect(() => () => list.ignorePending(), [list, api]);
  const loadSessions = useCallback(() => list.load(api), [list, api]);
  const deleteSession = useCallback(
    async (id: string) => {
      if ((await list.delete(api, id)) && id === open) left();
    },
    [list, api, open, left],
  );
  return { sessions, sessionsError: error, loadSessions, deleteSession };
}
