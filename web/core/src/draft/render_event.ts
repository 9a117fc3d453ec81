/** The draft's view of a `render`. */

import type { ArpMessage, ToolRenderEvent } from "../protocol/draft_types.js";

/** The first component of a `render` message; `null` for every other message. */
export function arpMessageToToolRenderEvent(message: ArpMessage): ToolRenderEvent | null {
  const first = message.type === "render" ? message.components?.[0] : undefined;
  if (first === undefined) return null;
  return { tool: message.tool_name ?? "", component: first.type, props: first.props };
}
