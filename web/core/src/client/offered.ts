/** Actions that the agent side offers to the user; a server of the draft announces fewer. Source: protocol.md 2.2. */

import type { AgentCapabilities } from "../protocol/generated/wire.js";

export interface Offered {
  /** Sending messages and answers; not offered while a recording is shown. */
  readonly input: boolean;
  /** Stopping, editing and regenerating a turn. Like the feature `resume`, turns are not part of the draft. */
  readonly turns: boolean;
  /** Sending files. */
  readonly files: boolean;
}

/** Return what the agent side offers; everything until its capabilities are known. */
export function offered(capabilities: AgentCapabilities | null | undefined): Offered {
  const has = (name: string) => !capabilities || (capabilities.features ?? []).includes(name);
  return { input: has("input") || !has("resume"), turns: has("resume"), files: has("file-upload") };
}
