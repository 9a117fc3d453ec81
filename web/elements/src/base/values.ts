/** Props as agents send them, of any shape, read as what they should be. Nothing here throws. */

import type { Component, Json, JsonObject } from "@agent-rendering/core";

type Given = Json | undefined;

/** A text; nothing is empty, objects are JSON. */
export function text(value: Given): string {
  if (value == null) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** A list; anything else is none. */
export function list(value: Given): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

/** The objects of a list. */
export function objects(value: Given): readonly JsonObject[] {
  return list(value).filter(isObject);
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** One of some words; the first if it is none of them. */
export function oneOf<W extends string>(value: Given, words: readonly [W, ...W[]]): W {
  return words.find((word) => word === value) ?? words[0];
}

/** A finite number, or `null`. */
export function number(value: Given): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

/** A whole number within bounds; `otherwise` if it is none. */
export function whole(value: Given, least: number, most: number, otherwise: number): number {
  const found = number(value);
  return found === null ? otherwise : Math.min(most, Math.max(least, Math.round(found)));
}

/** The components of a list. */
export function components(value: Given): readonly Component[] {
  const given: readonly unknown[] = list(value);
  return given.filter(isComponent);
}

/** Whether something is a component that can be drawn. */
export function isComponent(value: unknown): value is Component {
  return isObject(value) && typeof value.id === "string" && typeof value.type === "string" && isObject(value.props);
}

/** A text with what deceives the eye made visible: direction overrides, invisible and control characters. */
export function visible(value: string): string {
  return value.replace(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]|\u{e0000}|[\u{e0001}-\u{e007f}]/gu,
    (found) => `⟨U+${(found.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, "0")}⟩`,
  );
}

/**
 * A message that a program may have written, without colours, links and other codes; a carriage return begins its
 * line again. What moves a cursor is read by `printed` alone, which is loaded with long output.
 */
export function withoutCodes(value: string): string {
  return value
    .replace(
      /(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?|\x1b[ -/]*[0-~]?|[\0\x07\x0e\x0f]/g,
      "",
    )
    .replace(/\r+(?=\n|$)/g, "")
    .replace(/[^\n]*\r/g, "");
}

let last = 0;

/** An id for an element that others refer to; no other one in this document has it. */
export function freshId(prefix: string): string {
  last += 1;
  return `arp-${prefix}-${last}`;
}
