/** Numbers with their unit, as people write them. */

import type { Translate } from "../../base/context.js";

/** Currencies by their signs, for which, as for per cent, languages have places and spaces of their own. */
const CURRENCIES = new Map([
  ["$", "USD"],
  ["€", "EUR"],
  ["£", "GBP"],
  ["¥", "JPY"],
]);
const LONGEST_SHORT = 4;

/** Whether a unit is short enough to be at each tick of an axis. */
export function isShort(unit: string): boolean {
  return unit.length <= LONGEST_SHORT;
}

/** A number and its unit. Without a format it is shown as exactly as is useful: 1,234.568, 0.0001235. */
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

function exactly(size: number): Intl.NumberFormatOptions {
  if (size >= 1e15 || (size > 0 && size < 1e-6)) return { notation: "scientific", maximumSignificantDigits: 6 };
  return size > 0 && size < 0.1 ? { maximumSignificantDigits: 4 } : {};
}

/** A part of a whole: `12.5%`; what is there is never shown as nothing. */
export function percent(part: number, t: Translate): string {
  const formatted = (value: number) => t.number(value, { style: "percent", maximumFractionDigits: 1 });
  return part > 0 && part < 0.0005 ? `<${formatted(0.001)}` : formatted(part);
}
