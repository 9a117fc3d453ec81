/** Ratings of answers, stored by the server as facts of the turns. Source: http.md, "feedback". */

import type { ArpClient } from "@agent-rendering/core";

import type { FeedbackSource, Rating } from "./rating.js";

type Ratings = { readonly [turn: string]: Rating };

/**
 * Return a source that stores ratings of the session that a client shows. Changes by other screens are not reported, so
 * the ratings are read again when the reader returns to this page. A stream for each tab would cost one of the six
 * connections that a browser has to a server.
 */
export function serverFeedback(client: ArpClient): FeedbackSource {
  let known: { readonly session: string; readonly ratings: Promise<Ratings> } | null = null;
  const listeners = new Set<() => void>();

  const ask = async (session: string, init?: RequestInit) =>
    (await client.sessions.request(`/_api/feedback/${encodeURIComponent(session)}`, init)).json() as Promise<Ratings>;

  const look = () => {
    if (document.visibilityState === "hidden") return;
    known = null;
    for (const listener of listeners) listener();
  };

  return {
    async of(turnId) {
      const session = client.sessionId;
      if (session === null) return null;
      if (known?.session !== session) known = { session, ratings: ask(session) };
      const { ratings } = known;
      ratings.catch(() => {
        if (known?.ratings === ratings) known = null; // the next call requests them again
      });
      return (await ratings)[turnId] ?? null;
    },
    async give(turnId, { rating, comment = "" }) {
      const session = client.sessionId;
      if (session === null) return;
      const headers = { "Content-Type": "application/json" };
      await ask(session, {
        method: "POST",
        keepalive: true,
        headers,
        body: JSON.stringify({ turn_id: turnId, rating, comment }),
      });
      known = null;
    },
    watch(listener) {
      if (listeners.size === 0) {
        addEventListener("focus", look);
        document.addEventListener("visibilitychange", look);
      }
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
        if (listeners.size > 0) return;
        removeEventListener("focus", look);
        document.removeEventListener("visibilitychange", look);
      };
    },
  };
}
