/** Parts of a whole, as rings. */

import { nothing, svg, type SVGTemplateResult } from "lit";
import type { Translate } from "../context.js";
import type { ChartData } from "./data.js";
import { ringPath } from "./shapes.js";

/** A part of one ring. */
export interface Slice {
  readonly series: number;
  readonly label: number;
  readonly value: number;
  /** From 0 to 1. */
  readonly part: number;
  readonly path: string;
  /** Where its words stand, around the middle. */
  readonly middle: readonly [x: number, y: number];
}

/** The slices of all rings; what is not above zero has none. `hidden`: labels that are left out. */
export function slicesOf({ series, height }: ChartData, hidden: ReadonlySet<number>): Slice[] {
  const radius = height / 2 - 8;
  const thick = (radius * (series.length > 1 ? 0.7 : 0.44)) / Math.max(1, series.length);
  return series.flatMap(({ values }, ring) => {
    const kept = values.map((value, label) => (hidden.has(label) ? 0 : Math.max(0, value ?? 0)));
    const sum = kept.reduce((all, value) => all + value, 0);
    const [outer, inner] = [radius - ring * (thick + 2), radius - ring * (thick + 2) - thick];
    let turn = 0;
    return kept.flatMap((value, label) => {
      if (value <= 0) return [];
      const part = value / sum;
      const around = 2 * Math.PI * (turn + part / 2);
      const middle = [Math.sin(around) * ((outer + inner) / 2), -Math.cos(around) * ((outer + inner) / 2)] as const;
      const slice = { series: ring, label, value, part, path: ringPath(inner, outer, turn, turn + part), middle };
      turn += part;
      return [slice];
    });
  });
}

/** Draws slices around the middle of a chart so many pixels wide. */
export function pie(slices: readonly Slice[], { series, height }: ChartData, width: number, t: Translate): SVGTemplateResult {
  const percent = (part: number) => t.number(part, { style: "percent", maximumFractionDigits: 0 });
  const isOne = series.length === 1;
  return svg`<g transform="translate(${width / 2} ${height / 2})">${slices.map(({ path, part, label, middle: [x, y] }) => svg`
    <g class="arp-slice" data-look=${label % 8}><path d=${path}></path>
    ${isOne && part > 0.07 ? svg`<text x=${x.toFixed(1)} y=${y.toFixed(1)} dy=".34em" text-anchor="middle">${percent(part)}</text>` : nothing}</g>`)}</g>`;
}
