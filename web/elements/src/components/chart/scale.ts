/** Scales of axes: positions of values, and round values for the ticks. */

/** A linear scale from values to pixels. */
export interface Scale {
  readonly least: number;
  readonly most: number;
  readonly ticks: readonly number[];
  at(value: number): number;
}

/** Largest value of a scale; the difference of larger values could overflow to infinity. */
const LARGEST = 1e307;
const SMALLEST_STEP = 1e-98;
/** Least step relative to the values. A double has about 15 digits, so smaller steps would be rounded away. */
const LEAST_PART = 1e-13;

/** Return a round step: 1, 2, 2.5 or 5 times a power of ten. */
function stepFor(span: number, count: number): number {
  const rough = span / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const rest = rough / power;
  return (rest >= 7.07 ? 10 : rest >= 3.54 ? 5 : rest >= 2.24 ? 2.5 : rest >= 1.41 ? 2 : 1) * power;
}

/** Return the number of decimals that distinguishes the multiples of a step. */
function placesOf(step: number): number {
  const power = Math.floor(Math.log10(step) + 1e-9);
  const isQuarter = Math.abs(step / 10 ** power - 2.5) < 1e-6;
  return Math.max(0, Number(isQuarter) - power);
}

/**
 * Return a scale with round ticks; they are whole numbers if all values are.
 *
 * @param values Values that must fit; without any the scale is from 0 to 1.
 * @param withZero Whether 0 must be on the scale. Without it, the lengths of bars and the heights of areas would give a
 *   false impression of their proportions.
 * @param count Approximate number of ticks.
 * @param from Pixel of the least value.
 * @param to Pixel of the greatest value.
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
  // Zero is added if the values differ by more than a factor of two. Otherwise it would make values that are close to
  // each other look equal.
  if (withZero || (least > 0 && least < 0.5 * most) || (most < 0 && most > 0.5 * least))
    [least, most] = [Math.min(0, least), Math.max(0, most)];
  // A single value needs a range around it: a scale of length 0 would divide by zero.
  if (least === most)
    [least, most] = least === 0 ? [0, 1] : [Math.min(least * 0.9, least * 1.1), Math.max(least * 0.9, least * 1.1)];
  const areWhole = values.length > 0 && values.every(Number.isInteger);
  const finest = Math.max(SMALLEST_STEP, LEAST_PART * Math.max(-least, most), areWhole ? 1 : 0);
  const wanted = stepFor(Math.max(finest, most - least), count);
  const step = wanted < finest ? stepFor(finest, 1) : areWhole && wanted === 2.5 ? 2 : wanted;
  const first = Math.floor(least / step + 1e-9);
  const last = Math.max(first + 1, Math.ceil(most / step - 1e-9));
  const places = placesOf(step);
  // Multiples of a step are computed and rounded: adding the step repeatedly would show 0.30000000000000004.
  const ticks = Array.from({ length: Math.min(50, last - first + 1) }, (_, at) =>
    Number(((first + at) * step).toFixed(places)),
  );
  const [low, high] = [first * step, last * step];
  return { least: low, most: high, ticks, at: (value) => from + ((value - low) / (high - low)) * (to - from) };
}

/** Return the number format for ticks: short, but no two ticks look the same. */
export function tickFormat(ticks: readonly number[]): Intl.NumberFormatOptions {
  const most = Math.max(...ticks.map(Math.abs), 0);
  const step = Math.abs((ticks[1] ?? 1) - (ticks[0] ?? 0)) || 1;
  const places = placesOf(step);
  // Decimals needed if ticks are written in thousands, millions and so on.
  const group = 10 ** (3 * Math.floor(Math.log10(Math.max(most, 1)) / 3));
  const short = placesOf(step / group);
  if (most > 0 && (most >= 1e15 || most < 1e-4 || places > 8))
    return { notation: "scientific", maximumFractionDigits: placesOf(step / 10 ** Math.floor(Math.log10(most))) };
  if (most >= 100_000 && short <= 2) return { notation: "compact", maximumFractionDigits: short };
  return { minimumFractionDigits: places, maximumFractionDigits: places };
}
