/** Parts of a whole, as rings. */

import { nothing, svg, type SVGTemplateResult } from "lit";
import type { Translate } from "../../base/context.js";
import type { ChartData } from "./data.js";
import { lookOf, ringPath } from "./shapes.js";

/** A part of one ring. */
export interface Slice {
  readonly series: number;
  readonly label: number;
  readonly value: number;
  /** From 0 to 1. */
  readonly part: number;
  readonly path: string;
  /** Where its words are, around the middle. */
  readonly middle: readonly [x: number, y: number];
}

/** Smaller parts have no room for their words. */
const LEAST_LABELLED = 0.07;

/** The slices of all rings in a square so many pixels wide; what is not above zero has none. `hidden`: labels that are left out. */
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

/** Draws slices around the middle of such a square. `id` is what its textures are named after, `looked` the slice that is looked at. */
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

/** The fill of a texture. */
export function textureOf(id: string, texture: number): string {
  return `url(#${id}-${texture})`;
}

/** Stripes and dots, by which parts are distinguished where colours come again. */
function textures(id: string): SVGTemplateResult {
  return svg`<defs><pattern id="${id}-1" class="arp-texture" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path d="M1,0V6"></path></pattern><pattern id="${id}-2" class="arp-texture" width="7" height="7" patternUnits="userSpaceOnUse"><path d="M3.5,3.5h0"></path></pattern></defs>`;
}
