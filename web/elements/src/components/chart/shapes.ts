/** Turns series into SVG paths. Of a long series, each pixel column keeps its lowest and its highest point. */

/** Position in pixels; `null` is a gap. */
export type Point = readonly [x: number, y: number] | null;

/** Dash patterns of lines, so that series can be distinguished without colours. */
export const DASHES = ["", "7 4", "2 3", "10 3 2 3", "4 2", "12 4", "2 5", "6 2 2 2 2 2"] as const;

/** Number of colours. */
const COLOURS = 8;

/**
 * Return colour and texture of one of `count` parts. After eight parts the colours repeat in another order and with
 * another texture. The last part lies beside the first one in a pie, so it never gets the same colour.
 */
export function lookOf(part: number, count: number): [colour: number, texture: number] {
  const round = Math.floor(part / COLOURS);
  const colour = (part + 4 * round) % COLOURS;
  const isBesideFirst = part > 0 && part === count - 1 && colour === 0;
  return [isBesideFirst ? 2 : colour, round % 3];
}

/** Return at most two points per pixel, the lowest and the highest of each column; gaps are kept. */
export function thinned(points: readonly Point[], width: number): readonly Point[] {
  if (points.length <= 4 * width) return points;
  const made: Point[] = [];
  const size = points.length / width;
  for (let column = 0; column < width; column += 1) {
    const part = points.slice(Math.floor(column * size), Math.floor((column + 1) * size));
    const there = part.filter((point) => point !== null);
    if (there.length === 0) {
      made.push(null);
      continue;
    }
    const low = there.reduce((one, other) => (other[1] < one[1] ? other : one));
    const high = there.reduce((one, other) => (other[1] > one[1] ? other : one));
    made.push(...(low[0] <= high[0] ? [low, high] : [high, low]));
  }
  return made;
}

/** Return a line through points, broken at gaps. A point between two gaps becomes a dot. */
export function linePath(points: readonly Point[]): string {
  let path = "";
  points.forEach((point, at) => {
    if (point === null) return;
    const begins = (points[at - 1] ?? null) === null;
    path += `${begins ? "M" : "L"}${pointText(point)}`;
    if (begins && (points[at + 1] ?? null) === null) path += "h0";
  });
  return path;
}

/** Return the area between a line and a base. */
export function areaPath(points: readonly Point[], base: number): string {
  let path = "";
  let first: Point = null;
  points.forEach((point, at) => {
    if (point === null) return;
    if (first === null) first = point;
    path += `${first === point ? `M${short(point[0])},${short(base)}L` : "L"}${pointText(point)}`;
    if ((points[at + 1] ?? null) === null) {
      path += `L${short(point[0])},${short(base)}Z`;
      first = null;
    }
  });
  return path;
}

/** Return a bar from a base to an end with rounded corners. */
export function barPath(x: number, width: number, base: number, end: number): string {
  const radius = Math.min(3, width / 2, Math.abs(end - base));
  const inner = end < base ? end + radius : end - radius;
  const [left, right] = [short(x), short(x + width)];
  return `M${left},${short(base)}V${short(inner)}Q${left},${short(end)} ${short(x + radius)},${short(end)}H${short(x + width - radius)}Q${right},${short(end)} ${right},${short(inner)}V${short(base)}Z`;
}

/** Return a segment of a ring between two angles, given as turns: 0 is the top, 1 is a full turn. */
export function ringPath(inner: number, outer: number, from: number, to: number): string {
  // SVG draws nothing for an arc that ends where it starts, so a full ring ends just before its start.
  const end = to - from >= 1 ? from + 0.9999 : to;
  const at = (radius: number, turn: number) =>
    `${short(radius * Math.sin(2 * Math.PI * turn))},${short(-radius * Math.cos(2 * Math.PI * turn))}`;
  const large = end - from > 0.5 ? 1 : 0;
  return `M${at(outer, from)}A${short(outer)},${short(outer)} 0 ${large} 1 ${at(outer, end)}L${at(inner, end)}A${short(inner)},${short(inner)} 0 ${large} 0 ${at(inner, from)}Z`;
}

/** Return a mark around the origin. There are five shapes, selected by the look. */
export function markPath(look: number, size: number): string {
  const s = short(size);
  const d = short(size * 1.25);
  return [
    `M${-size},0a${s},${s} 0 1 0 ${2 * size},0a${s},${s} 0 1 0 ${-2 * size},0Z`,
    `M${-size * 0.9},${-size * 0.9}h${1.8 * size}v${1.8 * size}h${-1.8 * size}Z`,
    `M0,${-d}L${d},${s}H${-d}Z`,
    `M0,${-d}L${d},0L0,${d}L${-d},0Z`,
    `M0,${d}L${d},${-s}H${-d}Z`,
  ][look % 5] as string;
}

function pointText(point: readonly [number, number]): string {
  return `${short(point[0])},${short(point[1])}`;
}

function short(value: number): number {
  return Math.round(value * 10) / 10;
}
