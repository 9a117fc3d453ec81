/**
 * Frames in, messages out. A frame is JSON: one message of the agent side, or an array of them. Each message is
 * checked against a table that is generated from the server's types. Nothing here throws.
 * Source: protocol.md 2.
 */

import { completed } from "./draft_fields.js";
import { parseJson } from "./exact_json.js";
import { COMPONENT, MESSAGES, OPS, PARTS } from "./generated/tables.js";
import type { AgentMessage, Component, JsonObject } from "./generated/wire.js";
import { isObject } from "./is_object.js";
import { repeatsKey } from "./repeated_keys.js";

/** Content of a frame. */
export interface Frame {
  /** Messages in order, without unknown types; empty if any of them cannot be read. */
  readonly messages: readonly AgentMessage[];
  /** Reason why the frame cannot be read; `null` if it can. */
  readonly fault: string | null;
  /** Type of the message that cannot be read, if it was alone and its type is known. */
  readonly type: string | null;
}

interface Field {
  readonly name: string;
  /** `:` required, `?` may be absent, `~` may be absent or null. */
  readonly mark: string;
  /** Kind of its value; see `MESSAGES` in `generated/tables.ts`. */
  readonly kind: string;
}
type Fields = readonly Field[];

const MESSAGE_FIELDS = fieldsByTag(MESSAGES);
const OP_FIELDS = fieldsByTag(OPS);
const COMPONENT_FIELDS = fieldsOf(COMPONENT);
const PART_FIELDS = fieldsByTag(PARTS);

/** Read a frame: all of it or nothing. */
export function readFrame(text: unknown): Frame {
  try {
    const plain = parseJson(text as string);
    // JSON.parse keeps the last of two equal keys, other parsers the first: two readers would see two messages.
    if (repeatsKey(text as string, plain)) return unread("frame");
    const items = Array.isArray(plain) ? plain : [plain];
    const messages: AgentMessage[] = [];
    for (const item of items) {
      const type = isObject(item) ? item.type : undefined;
      if (typeof type !== "string") return unread("message");
      const fields = MESSAGE_FIELDS.get(type);
      if (fields === undefined) continue;
      const isComplete = fits(item, fields);
      const full = isComplete ? item : completed(item as JsonObject);
      if (!isComplete && !fits(full, fields)) return unread(type, items.length === 1 ? type : null);
      messages.push(full as unknown as AgentMessage);
    }
    return { messages, fault: null, type: null };
  } catch {
    return unread("frame");
  }
}

function unread(what: string, type: string | null = null): Frame {
  return { messages: [], fault: `a ${what} that cannot be read`, type };
}

/** Return whether a value has the structure of a component; its props are not checked. */
export function isComponent(value: unknown): value is Component {
  return fits(value, COMPONENT_FIELDS);
}

function fieldsByTag(table: { readonly [tag: string]: string }): Map<string, Fields> {
  return new Map(Object.entries(table).map(([tag, fieldNames]) => [tag, fieldsOf(fieldNames)]));
}

function fieldsOf(fieldNames: string): Fields {
  return fieldNames.split(" ").map((field) => {
    const [, name = "", mark = "", kind = ""] = /^(\w+)(.)(.+)/.exec(field) as string[];
    return { name, mark, kind };
  });
}

/** Return whether an object has the fields. Runs for each message: a plain loop is fast even before it is compiled. */
function fits(value: unknown, fields: Fields): boolean {
  if (!isObject(value)) return false;
  for (let at = 0; at < fields.length; at += 1) {
    const { name, mark, kind } = fields[at] as Field;
    const item = value[name];
    if (item === undefined || (item === null && mark === "~")) {
      if (mark === ":") return false;
    } else if (!isKind(item, kind)) return false;
  }
  return true;
}

function isKind(value: unknown, kind: string): boolean {
  switch (kind[0]) {
    case "s":
      return typeof value === "string";
    case "i":
      return Number.isInteger(value);
    case "n":
      return typeof value === "number";
    case "b":
      return typeof value === "boolean";
    case "o":
      return isObject(value);
    case "a":
      return true;
    case "c":
      return isComponent(value);
    case "p":
      return (
        isObject(value) && OP_FIELDS.has(value.op as string) && fits(value, OP_FIELDS.get(value.op as string) as Fields)
      );
    case "[":
      return Array.isArray(value) && value.every((item) => isKind(item, kind.slice(2)));
    case "{":
      return isObject(value) && Object.values(value).every((item) => isKind(item, kind.slice(2)));
    case "|":
      return typeof value === "string" && kind.includes(`|${value}|`);
    default:
      return fits(value, PART_FIELDS.get(kind) as Fields);
  }
}
