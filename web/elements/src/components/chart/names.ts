/** Words at axes: how much room they take, and how they get along with little. */

import { svg, type SVGTemplateResult } from "lit";

const CHARACTER_PX = 6.9;
const WIDE_CHARACTER_PX = 12.5;
const GAP_PX = 14;
/** Names that are thinned out or turned are cut to so many pixels. */
const [LONGEST_LEVEL_PX, LONGEST_TURNED_PX] = [112, 150];
/** Narrower places for turned names would have them touch. */
const LEAST_TURNED_PX = 15;
/** Shorter names are thinned out instead of turned: years, numbers. */
const TURNED_FROM_PX = 45;
const ANGLE = 35;
const [RISE, RUN] = [Math.sin((ANGLE * Math.PI) / 180), Math.cos((ANGLE * Math.PI) / 180)];

/** About how wide a line of our small type is. */
export function widthOf(words: string): number {
  let width = 0;
  for (const letter of words) width += letter > "\u2e80" ? WIDE_CHARACTER_PX : CHARACTER_PX;
  return width;
}

/** Words that fit into so many pixels, cut at their end if need be. */
export function cut(words: string, room: number): string {
  if (widthOf(words) <= room) return words;
  let shown = "";
  for (const letter of words) {
    if (widthOf(shown + letter) + CHARACTER_PX > room && shown) break;
    shown += letter;
  }
  return `${shown.trimEnd()}…`;
}

/** Names drawn below an axis, and how many pixels they take besides their line. */
export interface Names {
  readonly drawing: readonly SVGTemplateResult[];
  readonly more: number;
}

/**
 * Names below an axis, none over another: all of them if they fit, cut if there is room enough for that, turned where
 * each counts, else as many as fit.
 */
export function namesBelow(
  labels: readonly string[],
  columns: readonly number[],
  bottom: number,
  left: number,
  right: number,
  isEach: boolean,
): Names {
  const place = (right - left) / Math.max(1, labels.length);
  const widest = labels.reduce((most, label) => Math.max(most, widthOf(label)), 1);
  const fits = widest + GAP_PX <= place;
  const room = fits ? Infinity : Math.max(LONGEST_LEVEL_PX, place - GAP_PX);
  if (isEach && !fits && room + GAP_PX > place && place >= LEAST_TURNED_PX && widest > TURNED_FROM_PX)
    return turned(labels, columns, bottom);
  const each = Math.max(1, Math.ceil((Math.min(widest, room) + GAP_PX) / place - 0.01));
  let end = -Infinity;
  const drawing = labels.flatMap((whole, at) => {
    const label = cut(whole, room);
    const half = widthOf(label) / 2;
    const middle = Math.min(Math.max(columns[at] as number, half + 2), right + 10 - half);
    if (at % each !== 0 || middle - half < end) return [];
    end = middle + half + GAP_PX / 2;
    return [svg`<text x=${middle} y=${bottom + 18} text-anchor="middle">${label}</text>`];
  });
  return { drawing, more: 0 };
}

function turned(labels: readonly string[], columns: readonly number[], bottom: number): Names {
  let longest = 0;
  const drawing = labels.map((label, at) => {
    const [x, y] = [(columns[at] as number) + 4, bottom + 14];
    const shown = cut(label, Math.min(LONGEST_TURNED_PX, (x - 6) / RUN)); // to the left there is only so much room
    longest = Math.max(longest, widthOf(shown));
    return svg`<text x=${x} y=${y} text-anchor="end" transform="rotate(${-ANGLE} ${x} ${y})">${shown}</text>`;
  });
  return { drawing, more: Math.ceil(longest * RISE) };
}
