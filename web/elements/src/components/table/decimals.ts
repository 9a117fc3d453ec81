/**
 * Numbers that line up at their decimal points. What a cell lacks of the longest end in its column is written
 * unseen after it, by a style: so the number is copied, sorted and read aloud as it is, in any font.
 */

import { written } from "./figures.js";
import type { Row } from "./sort.js";

/** How the numbers of a column end at most. */
export interface Tail {
  /** Digits after the point. */
  readonly digits: number;
  /** What follows them: `" %"`, or nothing. */
  readonly sign: string;
}

const ENDS = /\d(?:\.(\d+))?(\s*[%€]?)$/;
const HAS_EXPONENT = /\de[-+]?\d/i;
/** More digits than this are those of a mistake: a column is not widened for them. */
const MOST_DIGITS = 20;

/** The longest end in a column of numbers. */
export function tailOf(rows: readonly Row[], column: number, decimals: number | null = null): Tail {
  let [digits, sign] = [0, ""];
  for (const row of rows) {
    const value = row[column];
    if (value == null) continue;
    const own = endOf(written(value, decimals));
    if (own === null || own.digits > MOST_DIGITS) continue;
    digits = Math.max(digits, own.digits);
    if (own.sign.length > sign.length) sign = own.sign;
  }
  return { digits, sign };
}

/** What a number lacks of that end, as characters of the same width. */
export function missing(shown: string, { digits, sign }: Tail): string {
  const own = digits === 0 && sign === "" ? null : endOf(shown);
  if (own === null || own.digits > digits) return "";
  return `${own.digits === 0 && digits > 0 ? "." : ""}${"0".repeat(digits - own.digits)}${own.sign === "" ? sign : ""}`;
}

function endOf(shown: string): Tail | null {
  const found = HAS_EXPONENT.test(shown) ? null : ENDS.exec(shown.trim());
  return found && { digits: found[1]?.length ?? 0, sign: found[2] ?? "" };
}
