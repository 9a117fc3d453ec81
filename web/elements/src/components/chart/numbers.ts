/** Formats numbers with their unit for the locale. */

import type { Translate } from "../../base/context.js";

/** Currencies by their signs. Languages place the signs of currencies, and the percent sign, in different ways. */
const CURRENCIES = new Map([
  ["$", "USD"],
  ["€", "EUR"],
  ["£", "GBP"],
  ["¥", "JPY"],
]);
const LONGEST_SHORT = 4;

/** Return whether a unit is short enough to be repeated at each tick of an axis. */
export function isShort(unit: string): boolean {
  return unit.length <= LONGEST_SHORT;
}

/** Return a number with its unit. Without a format it has the useful number of digits: 1,234.568, 0.0001235. */
export function figure(value: number, unit: string, t: Translate, format?: Intl.NumberFormatOptions): string {
  const options = format ?? exactly(Math.abs(value));
  const currency = CURRENCIES.get(unit);
  if (unit === "%") return t.number(value, { ...options, style: "unit", unit: "percent" });
  if (currency)
    return t.number(value, {
      trailingZeroDisplay: "stripIfInteger",
      ...options,
      style: "currency",
      currency,
      currencyDisplay: "narrowSymbol",
    });
  return t.number(value, options) + (unit && `\u00a0${unit}`);
}

/** Return a format that shows very large and very small numbers with a few significant digits. */
function exactly(size: number): Intl.NumberFormatOptions {
  if (size >= 1e15 || (size > 0 && size < 1e-6)) return { notation: "scientific", maximumSignificantDigits: 6 };
  return size > 0 && size < 0.1 ? { maximumSignificantDigits: 4 } : {};
}

/** Return a part of a whole as a percentage, such as `12.5%`; a small part is `<0.1%` and never `0%`. */
export function percent(part: number, t: Translate): string {
  const formatted = (value: number) => t.number(value, { style: "percent", maximumFractionDigits: 1 });
  return part > 0 && part < 0.0005 ? `<${formatted(0.001)}` : formatted(part);
}
