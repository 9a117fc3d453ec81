/** When the browser has a moment. */

const PATIENCE_MS = 1000;

/** Does what can wait when nothing else is to do, and not much later than that. */
export function soon(act: () => void): void {
  const { requestIdleCallback: idle } = globalThis as Partial<typeof globalThis>;
  if (idle) idle(act, { timeout: PATIENCE_MS });
  else setTimeout(act, 1);
}
