/** When the network is back, or the page is looked at again; nothing outside of browsers. */

/**
 * Calls `wake` when the network is back or the page shows again, and `turn` when somebody turns to
 * its window; gives the way to stop.
 */
export function onWake(wake: () => void, turn: () => void): () => void {
  const { document, addEventListener, removeEventListener } = globalThis as Partial<typeof globalThis>;
  const seen = () => {
    if (document?.visibilityState !== "hidden") wake();
  };
  addEventListener?.("online", wake);
  addEventListener?.("focus", turn);
  document?.addEventListener("visibilitychange", seen);
  return () => {
    removeEventListener?.("online", wake);
    removeEventListener?.("focus", turn);
    document?.removeEventListener("visibilitychange", seen);
  };
}
