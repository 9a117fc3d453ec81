/**
 * Values inside props, by the dotted paths of patches. Nothing is changed in place: what is given
 * shares what was not touched. Source: protocol.md 4.
 */

import type { Append, Json } from "./generated/wire.js";
import { isObject } from "./is_object.js";

/** Names and indexes, without the leading `props`. */
export type Path = readonly (string | number)[];

/**
 * A change that does not fit what shows; its text is what did not: a path, an id. It leads to a
 * refused commit, never out of this package.
 */
export class Refused extends Error {}

const MOST_SEGMENTS = 16;
const MOST_CHARACTERS = 64;

/** Splits the path of an op. */
export function parsePath(path: string): Path {
  const [root, ...names] = path.split(".");
  if (root !== "props" || names.length === 0 || names.length > MOST_SEGMENTS) {
    throw new Refused(path);
  }
  return names.map((name) => {
    const forbidden = name === "constructor" || name === "prototype" || name.startsWith("_");
    if (forbidden || name === "" || lengthOf(name) > MOST_CHARACTERS) {
      throw new Refused(path);
    }
    if (!/^[0-9]+$/.test(name)) return name;
    if (name.length > 9 || String(Number(name)) !== name) throw new Refused(path);
    return Number(name);
  });
}

/** The value with another one at a path; every step but the last must be there. */
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

/** The old value of an `append` with the new one after it. */
export function extended(old: Json | undefined, { value, offset, path }: Append): Json {
  if (typeof value === "string" && (old == null || typeof old === "string")) {
    const before = old ?? "";
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

/** The length of a text as the wire counts it: in code points. */
export function lengthOf(text: string): number {
  let pairs = 0;
  for (let at = 1; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit >= 0xdc00 && unit < 0xe000 && (text.charCodeAt(at - 1) & 0xfc00) === 0xd800) pairs += 1;
  }
  return text.length - pairs;
}
