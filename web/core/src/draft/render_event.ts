/** A `render` message in the form of the draft. */

import type { ArpMessage, ToolRenderEvent } from "../protocol/draft_types.js";

/** Return the first component of a `render` message, or `null` for every other message. */
export function arpMessageToToolRenderEvent(message: ArpMessage): ToolRenderEvent | null {
  const first = message.type === "render" ? message.components?.[0] : undefined;
  if (first === undefined) return null;
  return { tool: message.tool_name ?? "", component: first.type, props: first.props };
}
