/** An input of a tool that a person changes: JSON as it is written in a text area, and what is read of it. */

import { repeatsKey, type JsonObject } from "@agent-rendering/core";

import { isObject } from "../../base/values.js";

const DECEIVING =
  /[\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]|\udb40[\udc00-\udc7f]/g;

/** The text to begin with: laid out, and with what deceives the eye as escapes, which mean the same. */
export function textOf(json: string): string {
  const isExact = /\d{16}/.test(json); // laid out by way of numbers, long ones would be others
  const text = isExact ? json : JSON.stringify(JSON.parse(json), null, 2);
  return text.replace(DECEIVING, (found) =>
    [...Array(found.length).keys()].map((at) => `\\u${found.charCodeAt(at).toString(16).padStart(4, "0")}`).join(""),
  );
}

/** The object that a text is; `null` if it is none, or would be another one when it is sent. */
export function readInput(text: string): JsonObject | null {
  let isExact = true;
  const check = (_name: string, value: unknown) => {
    // A whole number beyond 2^53 is read as another one, and a larger one as infinity, which JSON has not.
    if (
      typeof value === "number" &&
      (!Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value)))
    )
      isExact = false;
    return value;
  };
  try {
    const read: unknown = JSON.parse(text, check);
    return isExact && isObject(read) && !repeatsKey(text, read) ? (read as JsonObject) : null;
  } catch {
    return null;
  }
}
