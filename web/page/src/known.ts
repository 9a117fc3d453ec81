/**
 * Which chats of an address exist. A `hello` with an unknown id begins a session of that id, so the page asks before
 * it sends one: a dead or mistyped link must not begin a chat.
 *
 * A chat that nobody has used yet may be gone, as the server removes it. Its entry in the history of the tab is marked
 * as fresh, so that "back" and a reload find a new chat there.
 */

/** Asks the server; whatever else is wrong, the connection says. */
export async function isMissing(sessionId: string | null, token: string | null): Promise<boolean> {
  if (sessionId === null || isFresh(sessionId)) return false;
  const headers = token === null ? {} : { Authorization: `Bearer ${token}` };
  try {
    const answer = await fetch(new URL(`_api/chats/${encodeURIComponent(sessionId)}?limit=1`, document.baseURI), {
      headers,
    });
    return answer.status === 404;
  } catch {
    return false;
  }
}

/** Names the chat of this entry of the history, which nobody has used yet. */
export function nameFresh(sessionId: string, href: string): void {
  history.replaceState({ fresh: sessionId }, "", href);
}

/** Marks the chat of this entry as used. */
export function use(): void {
  if ((history.state as { fresh?: string } | null)?.fresh !== undefined) history.replaceState(null, "", location.href);
}

function isFresh(sessionId: string): boolean {
  return (history.state as { fresh?: string } | null)?.fresh === sessionId;
}
