/**
 * Frames in, messages out: JSON that is one message of the agent side, or an array of them, each
 * held against the table that is made from the server's own types. Nothing here throws.
 * Source: protocol.md 2.
 */

import { COMPONENT, MESSAGES, OPS } from "./generated/tables.js";
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

type Shape = string | readonly Shape[] | { readonly [field: string]: Shape };

const MESSAGE_SHAPES = new Map<string, Shape>(Object.entries(MESSAGES));
const OP_SHAPES = new Map<string, Shape>(Object.entries(OPS));

/** Reads a frame: all of it or nothing. */
export function readFrame(text: unknown): Frame {
  let plain: unknown;
  try {
    plain = JSON.parse(text as string);
    const items = Array.isArray(plain) ? plain : [plain];
    const alone = items.length === 1;
    const messages: AgentMessage[] = [];
    for (const item of items) {
      const type = isObject(item) ? item.type : undefined;
      if (typeof type !== "string") return unread("message.type: expected a string");
      const shape = MESSAGE_SHAPES.get(type);
      if (shape === undefined) continue;
      const where = misfit(item, shape, type);
      if (where !== null) return unread(`${where}: does not fit`, alone ? type : null);
      messages.push(item as unknown as AgentMessage);
    }
    return { messages, fault: null, type: null };
  } catch {
    return unread("message is not JSON");
  }
}

function unread(fault: string, type: string | null = null): Frame {
  return { messages: [], fault, type };
}

/** Tells whether a value is a component as far as the wire's structure goes. */
export function isComponent(value: unknown): value is Component {
  return misfit(value, "component", "") === null;
}

/** Tells whether a value is a JSON object. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The place that does not fit; `null` if all of it does. */
function misfit(value: unknown, shape: Shape, where: string): string | null {
  if (typeof shape === "string") return fitsWord(value, shape, where);
  if (Array.isArray(shape)) {
    if (!Array.isArray(value)) return where;
    for (const item of value) {
      const found = misfit(item, shape[0] as Shape, where);
      if (found !== null) return found;
    }
    return null;
  }
  return isObject(value) ? misfitOfFields(value, shape as { [field: string]: Shape }, where) : where;
}

function misfitOfFields(
  value: JsonObject,
  fields: { readonly [field: string]: Shape },
  where: string,
): string | null {
  for (const [marked, shape] of Object.entries(fields)) {
    let found: string | null = null;
    if (marked === "*") {
      for (const item of Object.values(value)) found ??= misfit(item, shape, where);
    } else {
      const mark = marked.at(-1) as string;
      const name = mark === "?" || mark === "~" ? marked.slice(0, -1) : marked;
      const item = Object.hasOwn(value, name) ? value[name] : undefined;
      const absent = item === undefined ? mark === "?" || mark === "~" : item === null && mark === "~";
      if (!absent) found = misfit(item, shape, `${where}.${name}`);
    }
    if (found !== null) return found;
  }
  return null;
}

function fitsWord(value: unknown, word: string, where: string): string | null {
  switch (word) {
    case "s":
      return typeof value === "string" ? null : where;
    case "i":
      return Number.isInteger(value) ? null : where;
    case "n":
      return typeof value === "number" ? null : where;
    case "b":
      return typeof value === "boolean" ? null : where;
    case "o":
      return isObject(value) ? null : where;
    case "a":
      return value === undefined ? where : null;
    case "component":
      return misfit(value, COMPONENT, where);
    case "op": {
      const shape = isObject(value) && OP_SHAPES.get(value.op as string);
      return shape ? misfit(value, shape, where) : where;
    }
    default: // a set of words
      return typeof value === "string" && word.includes(`|${value}|`) ? null : where;
  }
}
