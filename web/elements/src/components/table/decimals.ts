/**
 * Aligns the numbers of a column at their decimal points. If a number ends sooner than the longest ending in its
 * column, a style adds the missing characters invisibly. So the alignment works in any font, and the text of the cell
 * stays the plain number for copying, sorting and screen readers.
 */

import { EXPONENT_FROM, written } from "./figures.js";
import type { Row } from "./sort.js";

/** Longest ending of the numbers in a column. */
export interface Tail {
  /** Number of digits after the decimal point. */
  readonly digits: number;
  /** Sign after the digits, such as `" %"`; may be empty. */
  readonly sign: string;
}

const ENDS = /\d(?:\.(\d+))?(\s*[%€]?)$/;
const HAS_EXPONENT = /\de[-+]?\d/i;
/** Most digits that widen a column; a number with more is probably a mistake. */
const MOST_DIGITS = 20;

/** Return the longest ending in a column of numbers. */
export function tailOf(rows: readonly Row[], column: number, decimals: number | null = null): Tail {
  let [digits, sign] = [0, ""];
  for (const row of rows) {
    const value = row[column];
    if (value == null || (decimals === null && Number.isInteger(value))) continue;
    if (typeof value === "number" && decimals !== null && Math.abs(value) < EXPONENT_FROM) {
      digits = Math.max(digits, decimals);
      continue;
    }
    const own = endOf(written(value, decimals));
    if (own === null || own.digits > MOST_DIGITS) continue;
    digits = Math.max(digits, own.digits);
    if (own.sign.length > sign.length) sign = own.sign;
  }
  return { digits, sign };
}

/** Return the characters that a number lacks of the longest ending, as digits and signs of the same width. */
export function missing(shown: string, { digits, sign }: Tail): string {
  const own = digits === 0 && sign === "" ? null : endOf(shown);
  if (own === null || own.digits > digits) return "";
  return `${own.digits === 0 && digits > 0 ? "." : ""}${"0".repeat(digits - own.digits)}${own.sign === "" ? sign : ""}`;
}

/** Return the ending of a number; `null` for other texts and for numbers with an exponent, which cannot be aligned. */
function endOf(shown: string): Tail | null {
  const found = HAS_EXPONENT.test(shown) ? null : ENDS.exec(shown.trim());
  return found && { digits: found[1]?.length ?? 0, sign: found[2] ?? "" };
}
