/** The list of chats. */

import type { ChatSession, SessionAPI } from "@agent-rendering/core";
import { useCallback, useEffect, useRef, useState } from "react";

export interface Sessions {
  sessions: ChatSession[];
  sessionsError: Error | null;
  loadSessions: () => Promise<void>;
  deleteSession: (id: string) => Promise<void>;
}

/**
 * What a list of chats needs. Nothing here rejects: what went wrong is in `sessionsError`.
 *
 * @param left Called when the chat that is open has been deleted.
 */
export function useSessions(api: SessionAPI | null, open: string | null, left: () => void): Sessions {
  const [sessions, setSessions] = useState<ChatSession[]>([]);
  const [sessionsError, setError] = useState<Error | null>(null);
  /** Counts what was asked for, so that a late answer does not replace a newer one. */
  const round = useRef(0);
  useEffect(() => () => void (round.current += 1), [api]);

  const loadSessions = useCallback(async () => {
    if (api === null) return;
    const ours = ++round.current;
    try {
      const page = await api.page();
      if (ours !== round.current) return;
      setSessions(page.sessions);
      setError(null);
    } catch (error) {
      if (ours === round.current) setError(error as Error);
    }
  }, [api]);

  const deleteSession = useCallback(
    async (id: string) => {
      if (api === null) return;
      try {
        await api.remove(id);
      } catch (error) {
        setError(error as Error);
        return;
      }
      setSessions((before) => before.filter((session) => session.id !== id));
      if (id === open) left();
    },
    [api, open, left],
  );
  return { sessions, sessionsError, loadSessions, deleteSession };
}
