/** Reads props, which agents may send in any shape, as the types that a component needs. Nothing here throws. */

import type { Component, Json, JsonObject } from "@agent-rendering/core";

type Given = Json | undefined;

/** Return a value as text: objects as JSON, absent and null values as the empty text. */
export function text(value: Given): string {
  if (value == null) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Return an array as it is; anything else counts as an empty list. */
export function list(value: Given): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

/** Return the objects in a list; other items are left out. */
export function objects(value: Given): readonly JsonObject[] {
  return list(value).filter(isObject);
}

/** Return whether a value is a JSON object. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Return the value if it is one of the words, otherwise the first word. */
export function oneOf<W extends string>(value: Given, words: readonly [W, ...W[]]): W {
  return words.find((word) => word === value) ?? words[0];
}

/** Return a finite number, or `null` for anything else. */
export function number(value: Given): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

/** Return a number rounded and limited to bounds, or `otherwise` for anything else. */
export function whole(value: Given, least: number, most: number, otherwise: number): number {
  const found = number(value);
  return found === null ? otherwise : Math.min(most, Math.max(least, Math.round(found)));
}

/** Return the components in a list; other items are left out. */
export function components(value: Given): readonly Component[] {
  const given: readonly unknown[] = list(value);
  return given.filter(isComponent);
}

/** Return whether a value has the structure of a component, so that it can be drawn. */
export function isComponent(value: unknown): value is Component {
  return isObject(value) && typeof value.id === "string" && typeof value.type === "string" && isObject(value.props);
}

/**
 * Return a text with deceptive characters made visible: direction overrides, invisible and control characters. They
 * could make a file name or a command look like another one.
 */
export function visible(value: string): string {
  return value.replace(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]|\u{e0000}|[\u{e0001}-\u{e007f}]/gu,
    (found) => `⟨U+${(found.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, "0")}⟩`,
  );
}

/**
 * Return a message that a program may have written without its escape sequences for colours, links and the like. Text
 * before a carriage return is dropped, as a terminal overwrites it. Cursor movements are removed but not applied; only
 * `printed` applies them, which is loaded with long output.
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

/** Return an id for an element that others refer to. It is unique in the document. */
export function freshId(prefix: string): string {
  last += 1;
  return `arp-${prefix}-${last}`;
}
