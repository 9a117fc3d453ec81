/** What readers think of answers, kept by the server as facts of their turns. Source: http.md, "feedback". */

import type { ArpClient } from "@agent-rendering/core";

import type { FeedbackSource, Rating } from "./rating.js";

type Ratings = { readonly [turn: string]: Rating };

/** Keeps the feedback on the session that a client shows. */
export function serverFeedback(client: ArpClient): FeedbackSource {
  let known: { readonly session: string; readonly ratings: Promise<Ratings> } | null = null;

  const ask = async (session: string, init?: RequestInit) =>
    (await client.sessions.request(`/_api/feedback/${encodeURIComponent(session)}`, init)).json() as Promise<Ratings>;

  return {
    async of(turnId) {
      const session = client.sessionId;
      if (session === null) return null;
      if (known?.session !== session) known = { session, ratings: ask(session) };
      return (await known.ratings)[turnId] ?? null;
    },
    async give(turnId, { rating, comment = "" }) {
      const session = client.sessionId;
      if (session === null) return;
      const headers = { "Content-Type": "application/json" };
      await ask(session, { method: "POST", headers, body: JSON.stringify({ turn_id: turnId, rating, comment }) });
      known = null;
    },
  };
}
