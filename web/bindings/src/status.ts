/** The status of a client, and the capabilities of the agent side. */

import type { ArpCapabilities, Status } from "@agent-rendering/core";
import { fixed } from "./cells.js";

/** Status of a client before it connects. */
export const IDLE: Status = {
  phase: "idle",
  transport: null,
  attempt: 0,
  retryAt: null,
  reason: null,
  refusal: null,
  sessionId: null,
  loading: true,
  stale: false,
  capabilities: null,
  commands: [],
  activeTurn: null,
};

export const IDLE_CELL = fixed(IDLE);

const COMPLETED = new WeakMap<object, ArpCapabilities>();

/** Return the capabilities with all fields; the same object for the same status. */
export function capabilitiesOf({ capabilities }: Status): ArpCapabilities | null {
  if (capabilities === null) return null;
  let complete = COMPLETED.get(capabilities);
  if (complete === undefined) COMPLETED.set(capabilities, (complete = { features: [], ...capabilities }));
  return complete;
}
