/**
 * Formats the numbers of a column. All get the same number of decimals, that of the number with most, so that they can
 * be compared at a glance. Rounding errors of floating-point arithmetic (`12.330000000000002`) are not shown.
 */

import type { CellValue, Row } from "./sort.js";

/** Number of decimal digits that a double holds exactly; later digits may be rounding errors. */
const EXACT_DIGITS = 15;
/** Most decimals of numbers that people enter or measure; numbers with more are results of a computation. */
const MOST_DECIMALS = 6;
/** Numbers from here on are written with an exponent. */
export const EXPONENT_FROM = 1e21;
/** Significant digits that are shown of the smallest number in a column of computed numbers. */
const SIGNIFICANT = 4;

/** Return a number without rounding errors. */
export function withoutNoise(value: number): number {
  return Number.isInteger(value) ? value : Number(value.toPrecision(EXACT_DIGITS));
}

/** Return the number of decimals for a column; `null` shows each number as it is. */
export function decimalsOf(rows: readonly Row[], column: number): number | null {
  let [most, least] = [0, Infinity];
  for (const row of rows) {
    const value = row[column];
    if (typeof value !== "number" || value === 0) continue;
    least = Math.min(least, Math.abs(value));
    // Most tables have many integers; writing each of 40,000 of them as text would take 20 ms.
    if (Number.isInteger(value) && Math.abs(value) < EXPONENT_FROM) continue;
    const exact = String(withoutNoise(value));
    if (exact.includes("e")) return null;
    most = Math.max(most, exact.length - 1 - `${exact}.`.indexOf("."));
  }
  if (most <= MOST_DECIMALS) return Math.max(0, most);
  const wanted = SIGNIFICANT - 1 - Math.floor(Math.log10(least));
  return wanted <= MOST_DECIMALS ? Math.max(2, wanted) : null;
}

/** Return a cell as text; numbers get the given number of decimals. */
export function written(value: CellValue | undefined, decimals: number | null): string {
  if (typeof value !== "number") return value == null ? "" : String(value);
  return decimals === null || Math.abs(value) >= EXPONENT_FROM ? String(withoutNoise(value)) : value.toFixed(decimals);
}
