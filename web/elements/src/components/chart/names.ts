/** Places the labels of an axis: estimates their widths, and shortens, turns or drops those that do not fit. */

import { svg, type SVGTemplateResult } from "lit";

const CHARACTER_PX = 6.9;
const WIDE_CHARACTER_PX = 12.5;
const GAP_PX = 14;
/** Longest labels in pixels, if not all of them fit: horizontal ones, and turned ones. */
const [LONGEST_LEVEL_PX, LONGEST_TURNED_PX] = [112, 150];
/** Least distance of turned labels; with less they would touch. */
const LEAST_TURNED_PX = 15;
/** Labels that are not wider than this, such as years, are dropped instead of turned. */
const TURNED_FROM_PX = 45;
const ANGLE = 35;
const [RISE, RUN] = [Math.sin((ANGLE * Math.PI) / 180), Math.cos((ANGLE * Math.PI) / 180)];

/** Return the approximate width of a line in the small font, in pixels. */
export function widthOf(words: string): number {
  let width = 0;
  for (const letter of words) width += letter > "\u2e80" ? WIDE_CHARACTER_PX : CHARACTER_PX;
  return width;
}

/** Return a text that fits into a width in pixels, cut off with `…` if necessary. */
export function cut(words: string, room: number): string {
  if (widthOf(words) <= room) return words;
  let shown = "";
  for (const letter of words) {
    if (widthOf(shown + letter) + CHARACTER_PX > room && shown) break;
    shown += letter;
  }
  return `${shown.trimEnd()}…`;
}

/** Labels drawn below an axis, and the height in pixels that they need below the first line. */
export interface Names {
  readonly drawing: readonly SVGTemplateResult[];
  readonly more: number;
}

/**
 * Return the labels below an axis, without overlaps: all of them if they fit, cut off if that is enough, turned if each
 * is needed (`isEach`), otherwise only every n-th label.
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

/** Return all labels, turned so that each needs little width. */
function turned(labels: readonly string[], columns: readonly number[], bottom: number): Names {
  let longest = 0;
  const drawing = labels.map((label, at) => {
    const [x, y] = [(columns[at] as number) + 4, bottom + 14];
    const shown = cut(label, Math.min(LONGEST_TURNED_PX, (x - 6) / RUN)); // a turned label extends to the left, and must not leave the drawing
    longest = Math.max(longest, widthOf(shown));
    return svg`<text x=${x} y=${y} text-anchor="end" transform="rotate(${-ANGLE} ${x} ${y})">${shown}</text>`;
  });
  return { drawing, more: Math.ceil(longest * RISE) };
}
