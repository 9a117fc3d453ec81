/** When the network is back, or the page is looked at again; nothing outside of browsers. */

/** Calls `wake` at those times; gives the way to stop. */
export function onWake(wake: () => void): () => void {
  const { document, addEventListener, removeEventListener } = globalThis as Partial<typeof globalThis>;
  const seen = () => {
    if (document?.visibilityState !== "hidden") wake();
  };
  addEventListener?.("online", wake);
  document?.addEventListener("visibilitychange", seen);
  return () => {
    removeEventListener?.("online", wake);
    document?.removeEventListener("visibilitychange", seen);
  };
}
