/**
 * Frames in, messages out: JSON that is one message of the agent side, or an array of them, each
 * held against the table that is made from the server's own types. Nothing here throws.
 * Source: protocol.md 2.
 */

import { COMPONENT, MESSAGES, OPS, PARTS } from "./generated/tables.js";
import type { AgentMessage, Component, JsonObject } from "./generated/wire.js";

/** What a frame held. */
export interface Frame {
  /** Its messages in order; none if any of them cannot be read. Unknown types are left out. */
  readonly messages: readonly AgentMessage[];
  /** Why it cannot be read; `null` if it can. */
  readonly fault: string | null;
  /** The type of the message at fault, if it was alone and its type is known. */
  readonly type: string | null;
}

/** A field: its path, its mark, what it holds. */
type Field = readonly [path: readonly string[], mark: string, kind: string];
type Fields = readonly Field[];

const MESSAGE_FIELDS = fieldsByTag(MESSAGES);
const OP_FIELDS = fieldsByTag(OPS);
const COMPONENT_FIELDS = fieldsOf(COMPONENT);
const PART_FIELDS = fieldsByTag(PARTS);

/** Reads a frame: all of it or nothing. */
export function readFrame(text: unknown): Frame {
  try {
    const plain: unknown = JSON.parse(text as string);
    const items = Array.isArray(plain) ? plain : [plain];
    const messages: AgentMessage[] = [];
    for (const item of items) {
      const type = isObject(item) ? item.type : undefined;
      if (typeof type !== "string") return unread("message");
      const fields = MESSAGE_FIELDS.get(type);
      if (fields === undefined) continue;
      if (!fits(item, fields)) return unread(type, items.length === 1 ? type : null);
      messages.push(item as unknown as AgentMessage);
    }
    return { messages, fault: null, type: null };
  } catch {
    return unread("frame");
  }
}

function unread(what: string, type: string | null = null): Frame {
  return { messages: [], fault: `a ${what} that cannot be read`, type };
}

/** Tells whether a value is a component as far as the wire's structure goes. */
export function isComponent(value: unknown): value is Component {
  return fits(value, COMPONENT_FIELDS);
}

/** Tells whether a value is a JSON object. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function fieldsByTag(table: { readonly [tag: string]: string }): Map<string, Fields> {
  return new Map(Object.entries(table).map(([tag, told]) => [tag, fieldsOf(told)]));
}

function fieldsOf(told: string): Fields {
  return told.split(" ").map((field) => {
    const [, path, mark, kind] = /^([^:?~]+)(.)(.+)/.exec(field) as string[];
    return [(path as string).split("."), mark as string, kind as string];
  });
}

function fits(value: unknown, fields: Fields): boolean {
  return (
    isObject(value) &&
    fields.every(([path, mark, kind]) => {
      let item: unknown = value;
      for (const name of path) item = isObject(item) && Object.hasOwn(item, name) ? item[name] : undefined;
      if (item === undefined || (item === null && mark === "~")) return mark !== ":";
      return isKind(item, kind);
    })
  );
}

const TYPES: { readonly [kind: string]: string } = { s: "string", n: "number", b: "boolean" };

function isKind(value: unknown, kind: string): boolean {
  const inner = kind.slice(2);
  switch (kind[0]) {
    case "i":
      return Number.isInteger(value);
    case "o":
      return isObject(value);
    case "a":
      return true;
    case "c":
      return isComponent(value);
    case "p": {
      const fields = isObject(value) && OP_FIELDS.get(value.op as string);
      return fields ? fits(value, fields) : false;
    }
    case "[":
      return Array.isArray(value) && value.every((item) => isKind(item, inner));
    case "{":
      return isObject(value) && Object.values(value).every((item) => isKind(item, inner));
    case "|":
      return typeof value === "string" && kind.includes(`|${value}|`);
    default: {
      const fields = PART_FIELDS.get(kind);
      return fields ? fits(value, fields) : typeof value === TYPES[kind];
    }
  }
}
