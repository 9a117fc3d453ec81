/** What readers think of answers, kept by the server as facts of their turns. */

import type { ArpClient } from "@agent-rendering/core";
import type { FeedbackSource, Rating } from "@agent-rendering/elements/chat";

/** Keeps the feedback on the session that a client shows. */
export function feedbackOf(client: ArpClient, token: string | null): FeedbackSource {
  let known: { readonly session: string; readonly ratings: Promise<{ [turn: string]: Rating }> } | null = null;

  const ask = async (session: string, init: RequestInit = {}): Promise<unknown> => {
    const headers = { "Content-Type": "application/json", ...(token !== null && { Authorization: `Bearer ${token}` }) };
    const answer = await fetch(new URL(`_api/feedback/${encodeURIComponent(session)}`, document.baseURI), { ...init, headers });
    if (!answer.ok) throw new Error(await answer.text());
    return answer.json();
  };

  return {
    async of(turnId) {
      const session = client.sessionId;
      if (session === null) return null;
      if (known?.session !== session) known = { session, ratings: ask(session) as Promise<{ [turn: string]: Rating }> };
      return (await known.ratings)[turnId] ?? null;
    },
    async give(turnId, { rating, comment = "" }) {
      const session = client.sessionId;
      if (session === null) return;
      await ask(session, { method: "POST", body: JSON.stringify({ turn_id: turnId, rating, comment }) });
      known = null;
    },
  };
}
