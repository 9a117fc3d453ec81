/** Cells for components without a client. */

import type { Cell } from "@agent-rendering/core";

/** Return a cell with a constant value. */
export function fixed<T>(value: T): Cell<T> {
  return { get: () => value, subscribe: () => () => undefined };
}
