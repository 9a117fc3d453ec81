/** Axes: where values are, and which of them are labelled. */

/** A straight scale from values to pixels. */
export interface Scale {
  readonly least: number;
  readonly most: number;
  readonly ticks: readonly number[];
  at(value: number): number;
}

/** Values beyond it have no room between them that a number can tell. */
const LARGEST = 1e307;
const SMALLEST_STEP = 1e-98;
/** The least part of a value that a step can be: numbers have some 15 places. */
const LEAST_PART = 1e-13;

/** Steps that people count in: 1, 2, 2.5 and 5 times powers of ten. */
function stepFor(span: number, count: number): number {
  const rough = span / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const rest = rough / power;
  return (rest >= 7.07 ? 10 : rest >= 3.54 ? 5 : rest >= 2.24 ? 2.5 : rest >= 1.41 ? 2 : 1) * power;
}

/** How many places after the point tell a step and its multiples apart. */
function placesOf(step: number): number {
  const power = Math.floor(Math.log10(step) + 1e-9);
  const isQuarter = Math.abs(step / 10 ** power - 2.5) < 1e-6;
  return Math.max(0, Number(isQuarter) - power);
}

/**
 * A scale over values with round ticks; whole ones where all values are whole.
 *
 * @param values What must fit; without any it goes from 0 to 1.
 * @param withZero Whether 0 must be on it: lengths and areas lie without it.
 */
export function scaleOver(
  values: readonly number[],
  withZero: boolean,
  count: number,
  from: number,
  to: number,
): Scale {
  let [least, most] = values.reduce(
    ([low, high], value) => [Math.min(low, value), Math.max(high, value)],
    [Infinity, -Infinity],
  );
  if (least > most) [least, most] = [0, 1];
  [least, most] = [Math.max(-LARGEST, least), Math.min(LARGEST, most)];
  if (withZero || (least > 0 && least < 0.5 * most) || (most < 0 && most > 0.5 * least))
    [least, most] = [Math.min(0, least), Math.max(0, most)];
  if (least === most)
    [least, most] = least === 0 ? [0, 1] : [Math.min(least * 0.9, least * 1.1), Math.max(least * 0.9, least * 1.1)];
  const areWhole = values.length > 0 && values.every(Number.isInteger);
  const finest = Math.max(SMALLEST_STEP, LEAST_PART * Math.max(-least, most), areWhole ? 1 : 0);
  const wanted = stepFor(Math.max(finest, most - least), count);
  const step = wanted < finest ? stepFor(finest, 1) : areWhole && wanted === 2.5 ? 2 : wanted;
  const first = Math.floor(least / step + 1e-9);
  const last = Math.max(first + 1, Math.ceil(most / step - 1e-9));
  const places = placesOf(step);
  const ticks = Array.from({ length: Math.min(50, last - first + 1) }, (_, at) =>
    Number(((first + at) * step).toFixed(places)),
  );
  const [low, high] = [first * step, last * step];
  return { least: low, most: high, ticks, at: (value) => from + ((value - low) / (high - low)) * (to - from) };
}

/** How ticks are written: short, and no two alike. */
export function tickFormat(ticks: readonly number[]): Intl.NumberFormatOptions {
  const most = Math.max(...ticks.map(Math.abs), 0);
  const step = Math.abs((ticks[1] ?? 1) - (ticks[0] ?? 0)) || 1;
  const places = placesOf(step);
  // Of a large number so many places of its thousands, millions … tell the step.
  const group = 10 ** (3 * Math.floor(Math.log10(Math.max(most, 1)) / 3));
  const short = placesOf(step / group);
  if (most > 0 && (most >= 1e15 || most < 1e-4 || places > 8))
    return { notation: "scientific", maximumFractionDigits: placesOf(step / 10 ** Math.floor(Math.log10(most))) };
  if (most >= 100_000 && short <= 2) return { notation: "compact", maximumFractionDigits: short };
  return { minimumFractionDigits: places, maximumFractionDigits: places };
}
