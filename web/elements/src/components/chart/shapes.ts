/** Series to paths. Long series are thinned to what a pixel can show: the least and the most of it. */

/** A point in pixels; `null` is a gap. */
export type Point = readonly [x: number, y: number] | null;

/** Looks besides colour, so that series are distinguished without it. */
export const DASHES = ["", "7 4", "2 3", "10 3 2 3", "4 2", "12 4", "2 5", "6 2 2 2 2 2"] as const;

/** How many colours there are. */
const COLOURS = 8;

/**
 * The colour and the texture of a part among so many: after the eighth the colours come again, in another order and
 * with another texture, and the last is not of the colour of the first, beside which it lies.
 */
export function lookOf(part: number, count: number): [colour: number, texture: number] {
  const round = Math.floor(part / COLOURS);
  const colour = (part + 4 * round) % COLOURS;
  const isBesideFirst = part > 0 && part === count - 1 && colour === 0;
  return [isBesideFirst ? 2 : colour, round % 3];
}

/** At most two points a pixel: least and most of each column, gaps kept. */
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

/** A line through points, broken at gaps; a point between gaps is a dot. */
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

/** The ground between a line and a height. */
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

/** A bar from a height to another, its end rounded. */
export function barPath(x: number, width: number, base: number, end: number): string {
  const radius = Math.min(3, width / 2, Math.abs(end - base));
  const inner = end < base ? end + radius : end - radius;
  const [left, right] = [short(x), short(x + width)];
  return `M${left},${short(base)}V${short(inner)}Q${left},${short(end)} ${short(x + radius)},${short(end)}H${short(x + width - radius)}Q${right},${short(end)} ${right},${short(inner)}V${short(base)}Z`;
}

/** A piece of a ring between two turns, from 0 at the top to 1. */
export function ringPath(inner: number, outer: number, from: number, to: number): string {
  const end = to - from >= 1 ? from + 0.9999 : to;
  const at = (radius: number, turn: number) =>
    `${short(radius * Math.sin(2 * Math.PI * turn))},${short(-radius * Math.cos(2 * Math.PI * turn))}`;
  const large = end - from > 0.5 ? 1 : 0;
  return `M${at(outer, from)}A${short(outer)},${short(outer)} 0 ${large} 1 ${at(outer, end)}L${at(inner, end)}A${short(inner)},${short(inner)} 0 ${large} 0 ${at(inner, from)}Z`;
}

/** A mark around the origin: each look has a form of its own. */
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
