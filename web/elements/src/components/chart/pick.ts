/** Which point of a chart is meant: by a pointer, or by the keys. */

import type { Point } from "./shapes.js";

/** What is looked at: a label, and which of the series shown. */
export interface Looked {
  readonly at: number;
  readonly series: number;
}

/** The point nearest to a place, both ways; `null` without any. Of points at one place the last, which is drawn on top. */
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
 * Where a key leads among points that are anywhere: right and left through all of them from left to right, up and down
 * through all of them from the lowest to the highest. `undefined` for other keys.
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
