/** The input of a tool as text that a person edits: JSON as it shows in a text area, and the object that it means. */

import { repeatsKey } from "../protocol/repeated_keys.js";
import type { JsonObject } from "../protocol/generated/wire.js";
import { isObject } from "../protocol/is_object.js";

/** Characters that do not show, or that change the order of others. */
const DECEIVING =
  /[\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]|\udb40[\udc00-\udc7f]/g;

/** Return JSON as the text to begin with: indented, and with characters that deceive the eye as escapes. */
export function textOf(json: string): string {
  const isExact = /\d{16}/.test(json); // parsing would round such a number, so the text stays as it is
  const text = isExact ? json : JSON.stringify(JSON.parse(json), null, 2);
  return text.replace(DECEIVING, (found) =>
    [...Array(found.length).keys()].map((at) => `\\u${found.charCodeAt(at).toString(16).padStart(4, "0")}`).join(""),
  );
}

/** Return the object that a text means; `null` if it is not an object, or if parsing changes one of its values. */
export function readInput(text: string): JsonObject | null {
  let isExact = true;
  const check = (_name: string, value: unknown) => {
    // Parsing rounds whole numbers beyond 2^53 and makes larger ones infinite: the tool would get another input.
    if (
      typeof value === "number" &&
      (!Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value)))
    )
      isExact = false;
    return value;
  };
  try {
    const value: unknown = JSON.parse(text, check);
    return isExact && isObject(value) && !repeatsKey(text, value) ? value : null;
  } catch {
    return null;
  }
}
