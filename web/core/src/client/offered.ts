/** What a user may do, by what the agent side has announced; a server of the draft announces less. Source: protocol.md 2.2. */

import type { AgentCapabilities } from "../protocol/generated/wire.js";

export interface Offered {
  /** Say and answer something: not where a recording is shown. */
  readonly input: boolean;
  /** Stop a turn, edit it, have it answered again: turns are an addition to the draft, as `resume` is. */
  readonly turns: boolean;
  /** Send files. */
  readonly files: boolean;
}

/** Before the agent side has said anything, all of it. */
export function offered(capabilities: AgentCapabilities | null | undefined): Offered {
  const has = (name: string) => !capabilities || (capabilities.features ?? []).includes(name);
  return { input: has("input") || !has("resume"), turns: has("resume"), files: has("file-upload") };
}
