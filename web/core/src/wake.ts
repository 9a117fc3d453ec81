/** When the network is back, or the page is looked at again; nothing outside of browsers. */

/**
 * Calls `wake` when the network is back or the page shows again, and `turn` when somebody turns to
 * its window; gives the way to stop.
 */
export function onWake(wake: () => void, turn: () => void): () => void {
  const { document, addEventListener } = globalThis as Partial<typeof globalThis>;
  const listening = new AbortController();
  const options = { signal: listening.signal };
  const seen = () => {
    if (document?.visibilityState !== "hidden") wake();
  };
  addEventListener?.("online", wake, options);
  addEventListener?.("focus", turn, options);
  document?.addEventListener("visibilitychange", seen, options);
  return () => listening.abort();
}
