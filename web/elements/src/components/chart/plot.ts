/** Draws charts with two axes as SVG. */

import { nothing, svg, type SVGTemplateResult } from "lit";
import type { Translate } from "../../base/context.js";
import type { ChartData, Series } from "./data.js";
import { cut, namesBelow, widthOf } from "./names.js";
import { figure, isShort } from "./numbers.js";
import { scaleOver, tickFormat, type Scale } from "./scale.js";
import { areaPath, barPath, DASHES, linePath, markPath, thinned, type Point } from "./shapes.js";
import { styled } from "../../base/styled.js";

/** A drawn chart, with the positions of its points in pixels. */
export interface Plot {
  readonly drawing: SVGTemplateResult;
  /** x position of each label. */
  readonly columns: readonly number[];
  /** Points of each series shown. */
  readonly points: readonly (readonly Point[])[];
  readonly top: number;
  readonly bottom: number;
  readonly left: number;
  readonly right: number;
  /** Height of the whole drawing, including titles and turned labels. */
  readonly height: number;
}

/** Height of a title line. */
const LINE_PX = 22;
const TICK_PX = 52;
/** Most points of a line that get marks. */
const MOST_MARKS = 40;
/** Most bars that are drawn as rectangles; more are drawn as strokes, which is cheaper. */
const MOST_BARS = 400;

/** Draw a line, bar, area or scatter chart with a width in pixels. */
export function plot(data: ChartData, shown: readonly Series[], width: number, t: Translate): Plot {
  const { kind, labels, places, xTitle, unit } = data;
  const values = shown.flatMap(({ values }) => values.filter((value) => value !== null));
  const head = headOf(data);
  const top = head ? 10 + LINE_PX : 10;
  const bottom = top + data.height - 36;
  const y = scaleOver(
    values,
    kind === "bar" || kind === "area",
    Math.max(2, Math.round((bottom - top) / TICK_PX)),
    bottom,
    top,
  );
  const format = tickFormat(y.ticks);
  const ticks = y.ticks.map((tick) => figure(tick, isShort(unit) ? unit : "", t, format));
  const left = Math.ceil(Math.max(...ticks.map(widthOf))) + 14;
  const right = width - 12;
  const x = places ? scaleOver(places, false, Math.max(2, Math.round((right - left) / 90)), left + 6, right - 6) : null;
  const columns = columnsOf(data, left, right, x);
  const points = shown.map(({ values }) =>
    columns.map((column, at): Point => {
      const value = values[at];
      return value == null || Number.isNaN(column) ? null : [column, y.at(value)];
    }),
  );
  const zero = y.at(Math.min(Math.max(0, y.least), y.most));
  const names = x
    ? { drawing: axisOfNumbers(x, bottom, t), more: 0 }
    : namesBelow(labels, columns, bottom, left, right, kind === "bar");
  const below = bottom + 26 + names.more;
  const drawing = svg`
    <g class="arp-axis">${y.ticks.map(
      (tick, at) => svg`
      <line x1=${left} x2=${right} y1=${y.at(tick)} y2=${y.at(tick)} class=${tick === 0 ? "arp-zero" : "arp-grid"}></line>
      <text x=${left - 8} y=${y.at(tick)} dy=".32em" text-anchor="end">${ticks[at]}</text>`,
    )}
    ${names.drawing}
    ${head ? svg`<text class="arp-axis-title" x="0" y="14">${cut(head, width)}</text>` : nothing}
    ${xTitle ? svg`<text class="arp-axis-title" x=${(left + right) / 2} y=${below + 12} text-anchor="middle">${cut(xTitle, right - left)}</text>` : nothing}</g>
    ${kind === "bar" ? bars(shown, points, columns, zero, right - left) : shown.map((series, at) => svg`<g class="arp-series" ${colourStyle(series)} data-look=${series.look % 8}>${oneSeries(kind, series, points[at] ?? [], zero, right - left)}</g>`)}`;
  return { drawing, columns, points, top, bottom, left, right, height: below + (xTitle ? LINE_PX : 0) };
}

/** Return the title of the values, with the unit unless it is repeated at each tick. */
function headOf({ yTitle, unit }: ChartData): string {
  if (unit === "" || isShort(unit)) return yTitle;
  return yTitle === "" ? unit : `${yTitle} (${unit})`;
}

/** Return the x position of each label. Bars and scatter points are in the middle of their share of the width. */
function columnsOf({ kind, labels, places }: ChartData, left: number, right: number, x: Scale | null): number[] {
  if (x && places) return labels.map((_, at) => x.at(places[at] ?? Number.NaN));
  const band = (right - left) / Math.max(1, labels.length);
  const isBetween = kind === "bar" || labels.length === 1 || kind === "scatter";
  const step = (right - left - 12) / Math.max(1, labels.length - 1);
  return labels.map((_, at) => (isBetween ? left + band * (at + 0.5) : left + 6 + step * at));
}

/** Return the labels of an x axis of numbers, without separators of thousands, which years do not have. */
function axisOfNumbers(x: Scale, bottom: number, t: Translate): SVGTemplateResult[] {
  const format = tickFormat(x.ticks);
  return x.ticks.map(
    (tick) =>
      svg`<text x=${x.at(tick)} y=${bottom + 18} text-anchor="middle">${t.number(tick, { ...format, useGrouping: false })}</text>`,
  );
}

/** Return the bars of each series. If there are too many for rectangles, they are strokes, and thinned. */
function bars(
  shown: readonly Series[],
  points: readonly (readonly Point[])[],
  columns: readonly number[],
  zero: number,
  width: number,
): SVGTemplateResult[] {
  const band = width / Math.max(1, columns.length);
  const bar = Math.min(56, (band * 0.72) / Math.max(1, shown.length));
  const isDense = columns.length * shown.length > MOST_BARS || bar < 2;
  return shown.map((series, which) => {
    const offset = (which - shown.length / 2) * bar;
    const there = (isDense ? thinned(points[which] ?? [], Math.round(width)) : (points[which] ?? [])).filter(
      (point) => point !== null,
    );
    const path = isDense
      ? there.map(([x, y]) => `M${(x + offset + bar / 2).toFixed(1)},${zero.toFixed(1)}V${y.toFixed(1)}`).join("")
      : there
          .map(([x, y]) => barPath(x + offset + Math.min(1, bar / 8), Math.max(1, bar - Math.min(2, bar / 4)), zero, y))
          .join("");
    return svg`<g class="arp-series" ${colourStyle(series)} data-look=${series.look % 8}><path class=${isDense ? "arp-strokes" : "arp-bars"} d=${path} stroke-width=${isDense ? Math.max(1, bar) : nothing}></path></g>`;
  });
}

/** Return a series as a line, an area or points. */
function oneSeries(
  kind: ChartData["kind"],
  { look }: Series,
  points: readonly Point[],
  zero: number,
  width: number,
): unknown {
  const there = points.filter((point) => point !== null);
  const marks =
    kind === "scatter" && there.length > 600
      ? svg`<path class="arp-dots" d=${there.map(([x, y]) => `M${x.toFixed(1)},${y.toFixed(1)}h0`).join("")}></path>`
      : kind === "scatter" || there.length <= MOST_MARKS
        ? there.map(
            ([x, y]) =>
              svg`<path class="arp-mark" transform="translate(${x.toFixed(1)} ${y.toFixed(1)})" d=${markPath(look, kind === "scatter" ? 4 : 3)}></path>`,
          )
        : nothing;
  if (kind === "scatter") return marks;
  const few = thinned(points, Math.max(1, Math.round(width)));
  return svg`${kind === "area" ? svg`<path class="arp-area" d=${areaPath(few, zero)}></path>` : nothing}
    <path class="arp-line-path" d=${linePath(few)} stroke-dasharray=${DASHES[look % DASHES.length] || nothing}></path>${marks}`;
}

/** Return the agent's colour of a series as a custom property for the style sheet. */
export function colourStyle({ colour }: Series): unknown {
  return styled(colour === "" ? {} : { "--_arp-series": colour });
}
