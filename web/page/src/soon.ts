/** Work that can wait until the browser is idle. */

const PATIENCE_MS = 1000;

/** Call a function when the browser is idle, after one second at the latest. */
export function soon(act: () => void): void {
  const { requestIdleCallback: idle } = globalThis as Partial<typeof globalThis>;
  if (idle) idle(act, { timeout: PATIENCE_MS });
  else setTimeout(act, 1);
}
