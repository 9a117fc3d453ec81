/** Events of a browser that affect the connection: the network, and whether the user looks at the page. */

import type { Driver } from "./driver.js";

/**
 * Wake a driver when the network is back or the page becomes visible, end its wait when its window gets the focus, and
 * notify it when the network is gone. Outside of browsers this does nothing.
 *
 * @returns A function that stops this.
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
