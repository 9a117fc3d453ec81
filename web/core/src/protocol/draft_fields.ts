/** Defaults for fields that the v0.1 draft leaves out. Source: protocol.md, differences from the draft. */

import { isObject } from "./is_object.js";
import type { JsonObject } from "./generated/wire.js";

/** Code of an error that was sent without a code. */
export const NO_CODE = 0;

/** Defaults of the draft's messages that belong to a session, by type; `session_id` is added to all of them. */
const DEFAULTS: { readonly [type: string]: JsonObject } = {
  delta: { payload: { delta: "" } },
  tool_start: { payload: { tool: "", args: "" } },
  tool_end: { payload: { tool: "", ok: true } },
  render: { components: [] },
  patch: { ops: [] },
  commit: {},
};

/** Return a message with the fields that the draft leaves out; present fields stay as they are. */
export function completed(message: JsonObject): JsonObject {
  const { type, payload, message: outside } = message;
  if (type === "hello") return filled(message, { capabilities: { components: [] } });
  if (type === "error") {
    const inside = isObject(payload) ? payload.message : undefined;
    const error = inside || outside || "The server sent an error without a text.";
    return filled(message, { payload: { error, code: NO_CODE } });
  }
  const defaults = DEFAULTS[String(type)];
  return defaults ? filled(message, { session_id: "", ...defaults }) : message;
}

function filled(value: JsonObject, defaults: JsonObject): JsonObject {
  const full = { ...value };
  for (const [name, one] of Object.entries(defaults)) {
    const item = full[name];
    if (item == null) full[name] = one;
    else if (isObject(item) && isObject(one)) full[name] = filled(item, one);
  }
  return full;
}
