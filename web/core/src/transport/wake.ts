/** When the network goes and comes back, or the page is looked at again; nothing outside of browsers. */

import type { Driver } from "./driver.js";

/**
 * Wakes a driver when the network is back or the page shows again, ends its wait when somebody turns
 * to its window, and notifies it when the network is gone; returns a function that stops this.
 */
export function onWake(driver: Pick<Driver, "wake" | "resume" | "unplug">): () => void {
  const { document, addEventListener } = globalThis as Partial<typeof globalThis>;
  const listening = new AbortController();
  const options = { signal: listening.signal };
  const seen = () => {
    if (document?.visibilityState !== "hidden") driver.wake();
  };
  addEventListener?.("online", driver.wake, options);
  addEventListener?.("offline", driver.unplug, options);
  addEventListener?.("focus", driver.resume, options);
  document?.addEventListener("visibilitychange", seen, options);
  return () => listening.abort();
}
