/** Axes: where values stand, and which of them are told. */

/** A straight scale from values to pixels. */
export interface Scale {
  readonly least: number;
  readonly most: number;
  readonly ticks: readonly number[];
  at(value: number): number;
}

/** Steps that people count in: 1, 2 and 5 times powers of ten. */
function stepFor(span: number, count: number): number {
  const rough = span / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const rest = rough / power;
  return (rest >= 7.07 ? 10 : rest >= 3.16 ? 5 : rest >= 1.41 ? 2 : 1) * power;
}

/**
 * A scale over values with round ticks.
 *
 * @param values What must fit; without any it goes from 0 to 1.
 * @param withZero Whether 0 must be on it: lengths and areas lie without it.
 */
export function scaleOver(values: readonly number[], withZero: boolean, count: number, from: number, to: number): Scale {
  let [least, most] = values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
  if (least > most) [least, most] = [0, 1];
  if (withZero || (least > 0 && least < 0.5 * most) || (most < 0 && most > 0.5 * least)) [least, most] = [Math.min(0, least), Math.max(0, most)];
  if (least === most) [least, most] = least === 0 ? [0, 1] : [Math.min(least * 0.9, least * 1.1), Math.max(least * 0.9, least * 1.1)];
  const step = stepFor(most - least, count);
  const [first, last] = [Math.floor(least / step + 1e-9), Math.ceil(most / step - 1e-9)];
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const ticks = Array.from({ length: Math.min(50, last - first + 1) }, (_, at) => Number(((first + at) * step).toFixed(Math.min(20, decimals))));
  const [low, high] = [first * step, last * step];
  return { least: low, most: high, ticks, at: (value) => from + ((value - low) / (high - low)) * (to - from) };
}

/** How ticks are written: short, and all to the same place. */
export function tickFormat(ticks: readonly number[]): Intl.NumberFormatOptions {
  const most = Math.max(...ticks.map(Math.abs), 0);
  if (most >= 100_000) return { notation: "compact", maximumFractionDigits: 2 };
  const step = Math.abs((ticks[1] ?? 1) - (ticks[0] ?? 0)) || 1;
  if (most < 1e-4) return { notation: "scientific", maximumFractionDigits: 2 };
  const digits = Math.min(8, Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
  return { minimumFractionDigits: digits, maximumFractionDigits: digits };
}
