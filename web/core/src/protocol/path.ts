/**
 * Values inside props, addressed by the dotted paths of patches. Nothing is changed in place: a new value
 * shares its unchanged parts with the old one. Source: protocol.md 4.
 */

import type { Append, Json } from "./generated/wire.js";
import { isObject } from "./is_object.js";

/** Names and indexes, without the leading `props`. */
export type Path = readonly (string | number)[];

/**
 * A change that does not fit the current components. The message is the path or id that does not fit. It
 * ends in a refused commit and never leaves this package.
 */
export class Refused extends Error {}

const MOST_SEGMENTS = 16;
const MOST_CHARACTERS = 64;

/** Split the path of an operation. Throw `Refused` if the path is not allowed. */
export function parsePath(path: string): Path {
  const [root, ...names] = path.split(".");
  if (root !== "props" || names.length === 0 || names.length > MOST_SEGMENTS) {
    throw new Refused(path);
  }
  return names.map((name) => {
    // Names such as `constructor` and `__proto__` would reach the prototype of an object.
    const forbidden = name === "constructor" || name === "prototype" || name.startsWith("_");
    if (forbidden || name === "" || lengthOf(name) > MOST_CHARACTERS) {
      throw new Refused(path);
    }
    if (!/^[0-9]+$/.test(name)) return name;
    if (name.length > 9 || String(Number(name)) !== name) throw new Refused(path);
    return Number(name);
  });
}

/** Return a copy of a value with the item at a path replaced. Every step but the last must exist. */
export function setPath(value: Json, path: Path, next: (old: Json | undefined) => Json): Json {
  const [first, ...rest] = path as [string | number, ...(string | number)[]];
  const isLast = rest.length === 0;
  if (Array.isArray(value)) {
    if (typeof first !== "number" || first >= value.length) throw new Refused(String(first));
    const old = value[first] as Json;
    return value.with(first, isLast ? next(old) : setPath(old, rest, next));
  }
  const key = String(first);
  if (!isObject(value)) throw new Refused(key);
  const has = Object.hasOwn(value, key);
  if (isLast) return { ...value, [key]: next(has ? value[key] : undefined) };
  if (!has) throw new Refused(key);
  return { ...value, [key]: setPath(value[key] as Json, rest, next) };
}

/** Return the old value of an `append`, extended by the new one. */
export function extended(old: Json | undefined, { value, offset, path }: Append): Json {
  if (typeof value === "string" && (old == null || typeof old === "string")) {
    const before = old ?? "";
    // A wrong offset shows that an append was lost or came twice: the text would have a gap or a repetition.
    if (offset != null && offset !== lengthOf(before)) throw new Refused(path);
    return before + value;
  }
  if (Array.isArray(value) && (old == null || Array.isArray(old))) {
    const before = old ?? [];
    if (offset != null && offset !== before.length) throw new Refused(path);
    return [...before, ...value];
  }
  throw new Refused(path);
}

/** Return the length of a text in code points, the unit of the wire. */
export function lengthOf(text: string): number {
  let pairs = 0;
  for (let at = 1; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit >= 0xdc00 && unit < 0xe000 && (text.charCodeAt(at - 1) & 0xfc00) === 0xd800) pairs += 1;
  }
  return text.length - pairs;
}
