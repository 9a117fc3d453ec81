/**
 * Whether the chat of an address exists. A `hello` with an unknown id creates a session with that id. So the page asks
 * first: a dead or mistyped link must not create a chat.
 *
 * The server removes a chat that was never used. The history entry of an unused chat is marked as fresh, so that "back"
 * and a reload open a new chat there instead of an error.
 */

/** Return whether the server does not know a chat. All other errors are left to the connection to report. */
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

/** Set the address of this history entry to that of a new chat, and mark the entry as fresh. */
export function nameFresh(sessionId: string, href: string): void {
  history.replaceState({ fresh: sessionId }, "", href);
}

/** Mark the chat of this history entry as used. */
export function use(): void {
  if ((history.state as { fresh?: string } | null)?.fresh !== undefined) history.replaceState(null, "", location.href);
}

function isFresh(sessionId: string): boolean {
  return (history.state as { fresh?: string } | null)?.fresh === sessionId;
}
