/** Finds the point of a chart that the pointer or the keys select. */

import type { Point } from "./shapes.js";

/** The selected point: index of its label (`at`), and index among the series shown. */
export interface Looked {
  readonly at: number;
  readonly series: number;
}

/**
 * Return the point that is nearest to a position, or `null` without any points. Of several points in one place it is
 * the last one, which is drawn on top.
 */
export function nearestPoint(points: readonly (readonly Point[])[], x: number, y: number): Looked | null {
  let [best, least]: [Looked | null, number] = [null, Infinity];
  points.forEach((line, series) =>
    line.forEach((point, at) => {
      if (point === null) return;
      const apart = (point[0] - x) ** 2 + (point[1] - y) ** 2;
      if (apart <= least) [best, least] = [{ at, series }, apart];
    }),
  );
  return best;
}

/**
 * Return the point that a key leads to in a scatter chart, or `undefined` for other keys. Right and left visit all
 * points in order of x, up and down in order of height, so that each point can be reached with either pair of keys.
 */
export function walked(points: readonly (readonly Point[])[], from: Looked | null, key: string): Looked | undefined {
  const isUpright = key === "ArrowUp" || key === "ArrowDown";
  const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, Home: -Infinity, End: Infinity }[key];
  if (step === undefined) return undefined;
  const across = isUpright ? 1 : 0;
  const spots = points.flatMap((line, series) =>
    line.flatMap((point, at) => (point === null ? [] : [{ at, series, place: [point[0], -point[1]] as const }])),
  );
  spots.sort(
    ({ place: one }, { place: other }) =>
      one[across] - other[across] || one[(1 - across) as 0] - other[(1 - across) as 0],
  );
  const now = spots.findIndex(({ at, series }) => at === from?.at && series === from.series);
  return spots[Math.min(spots.length - 1, Math.max(0, now + step))];
}
