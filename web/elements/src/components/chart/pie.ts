/** Pie charts, drawn as one ring per series. */

import { nothing, svg, type SVGTemplateResult } from "lit";
import type { Translate } from "../../base/context.js";
import type { ChartData } from "./data.js";
import { lookOf, ringPath } from "./shapes.js";

/** One part of a ring. */
export interface Slice {
  readonly series: number;
  readonly label: number;
  readonly value: number;
  /** Share of the ring, from 0 to 1. */
  readonly part: number;
  readonly path: string;
  /** Position of its text, relative to the middle of the chart. */
  readonly middle: readonly [x: number, y: number];
}

/** Least share of a part with a text; smaller parts have no room for it. */
const LEAST_LABELLED = 0.07;

/**
 * Return the slices of all rings. Values that are not above zero get none.
 *
 * @param hidden Indexes of the labels that are left out.
 * @param side Width and height of the drawing in pixels.
 */
export function slicesOf({ series }: ChartData, hidden: ReadonlySet<number>, side: number): Slice[] {
  const radius = side / 2 - 8;
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

/**
 * Return the drawing of slices.
 *
 * @param side Width and height of the drawing in pixels.
 * @param id Prefix of the ids of its textures.
 * @param looked Index of the selected slice, if any.
 */
export function pie(
  slices: readonly Slice[],
  { series, labels }: ChartData,
  side: number,
  t: Translate,
  id: string,
  looked: number | undefined,
): SVGTemplateResult {
  const percent = (part: number) => t.number(part, { style: "percent", maximumFractionDigits: 0 });
  const isOne = series.length === 1;
  return svg`${labels.length > 8 ? textures(id) : nothing}<g class=${looked === undefined ? "" : "arp-picked"} transform="translate(${side / 2} ${side / 2})">${slices.map(
    ({ path, part, label, middle: [x, y] }, at) => {
      const [colour, texture] = lookOf(label, labels.length);
      return svg`<g class="arp-slice" data-look=${colour} data-picked=${at === looked ? "" : nothing}><path d=${path}></path>${texture ? svg`<path d=${path} fill=${textureOf(id, texture)}></path>` : nothing}${isOne && part > LEAST_LABELLED ? svg`<text x=${x.toFixed(1)} y=${y.toFixed(1)} dy=".34em" text-anchor="middle">${percent(part)}</text>` : nothing}</g>`;
    },
  )}</g>`;
}

/** Return the fill value for a texture. */
export function textureOf(id: string, texture: number): string {
  return `url(#${id}-${texture})`;
}

/** Return the stripes and dots that distinguish parts with the same colour. */
function textures(id: string): SVGTemplateResult {
  return svg`<defs><pattern id="${id}-1" class="arp-texture" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path d="M1,0V6"></path></pattern><pattern id="${id}-2" class="arp-texture" width="7" height="7" patternUnits="userSpaceOnUse"><path d="M3.5,3.5h0"></path></pattern></defs>`;
}
