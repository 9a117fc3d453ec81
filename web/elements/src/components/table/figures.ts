/**
 * How the numbers of a column are written: all with as many decimals as the one that has most, so that they can
 * be compared at a glance. What arithmetic has left behind (`12.330000000000002`) is not shown.
 */

import type { CellValue, Row } from "./sort.js";

/** A double is exact to so many digits; what is behind them is noise of arithmetic. */
const EXACT_DIGITS = 15;
/** Numbers that people enter or measure have at most so many decimals; more are those of a computation. */
const MOST_DECIMALS = 6;
/** Digits of the smallest of computed numbers that are shown. */
const SIGNIFICANT = 4;

/** A number without the noise of arithmetic. */
export function withoutNoise(value: number): number {
  return Number.isInteger(value) ? value : Number(value.toPrecision(EXACT_DIGITS));
}

/** How many decimals the numbers of a column get; `null`: each as it is. */
export function decimalsOf(rows: readonly Row[], column: number): number | null {
  let [most, least] = [0, Infinity];
  for (const row of rows) {
    const value = row[column];
    if (typeof value !== "number" || value === 0) continue;
    const exact = String(withoutNoise(value));
    if (exact.includes("e")) return null;
    most = Math.max(most, exact.length - 1 - `${exact}.`.indexOf("."));
    least = Math.min(least, Math.abs(value));
  }
  if (most <= MOST_DECIMALS) return Math.max(0, most);
  const wanted = SIGNIFICANT - 1 - Math.floor(Math.log10(least));
  return wanted <= MOST_DECIMALS ? Math.max(2, wanted) : null;
}

/** A number of a column with so many decimals. */
export function written(value: CellValue | undefined, decimals: number | null): string {
  if (typeof value !== "number") return value == null ? "" : String(value);
  return decimals === null || Math.abs(value) >= 1e21 ? String(withoutNoise(value)) : value.toFixed(decimals);
}
