/**
 * Which lines of two texts are the same.
 *
 * Theory of operation. Lines that occur once in each text, in the same order, are anchors: they are the
 * same line. What lies between two anchors is short as a rule and goes to jsdiff; what is not, and takes
 * too long, all went and all came. So two long texts that are alike cost what they are long, and the page
 * can breathe between anchors.
 */

import { diffArrays } from "diff";
import { breath } from "../table/sort.js";

/** A run of lines of one kind. */
export interface Change {
  readonly kind: "same" | "removed" | "added";
  readonly lines: readonly string[];
}

const SLICE_MS = 8;
/** For what lies between two anchors. */
const GAP_TIMEOUT_MS = 30;

/** The lines of a text; a line end at its end begins none. */
export function linesOfText(text: string): string[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/** Both texts as runs of lines, in order; runs of one kind never follow each other. */
export async function changesOf(before: readonly string[], after: readonly string[]): Promise<Change[]> {
  const changes: { kind: Change["kind"]; lines: string[] }[] = [];
  const add = (kind: Change["kind"], lines: readonly string[]) => {
    const last = changes.at(-1);
    if (lines.length === 0) return;
    if (last?.kind === kind) for (const line of lines) last.lines.push(line);
    else changes.push({ kind, lines: [...lines] });
  };
  let [old, now] = [0, 0];
  let slice = performance.now();
  for (const [left, right] of [...anchors(before, after), [before.length, after.length] as const]) {
    for (const { kind, lines } of gap(before.slice(old, left), after.slice(now, right))) add(kind, lines);
    if (left < before.length) add("same", [before[left] as string]);
    [old, now] = [left + 1, right + 1];
    if (performance.now() - slice > SLICE_MS) {
      await breath();
      slice = performance.now();
    }
  }
  return changes;
}

function gap(before: readonly string[], after: readonly string[]): Change[] {
  if (before.length === 0 || after.length === 0)
    return [
      { kind: "removed", lines: before },
      { kind: "added", lines: after },
    ];
  // Without types that fit read-only arrays; it changes neither.
  const parts = diffArrays(before as string[], after as string[], { timeout: GAP_TIMEOUT_MS });
  if (parts === undefined)
    return [
      { kind: "removed", lines: before },
      { kind: "added", lines: after },
    ];
  return parts.map(({ value, added, removed }) => ({
    kind: added ? "added" : removed ? "removed" : "same",
    lines: value,
  }));
}

/** Pairs of numbers of lines that are the same for certain: the longest rising run of unique common lines. */
function anchors(before: readonly string[], after: readonly string[]): (readonly [number, number])[] {
  const places = new Map<string, number>();
  const once = (lines: readonly string[]) => {
    const found = new Map<string, number>();
    lines.forEach((line, at) => found.set(line, found.has(line) ? -1 : at));
    return found;
  };
  for (const [line, at] of once(after)) if (at >= 0) places.set(line, at);
  const pairs: [number, number][] = [];
  for (const [line, at] of once(before)) {
    const other = places.get(line);
    if (at >= 0 && other !== undefined) pairs.push([at, other]);
  }
  return longestRising(pairs);
}

/** Of pairs that rise in the first number, the most that rise in the second too. */
function longestRising(pairs: readonly [number, number][]): [number, number][] {
  const ends: number[] = []; // by length, less one: the pair with the least second number that ends such a run
  const previous: number[] = [];
  pairs.forEach(([, second], at) => {
    let [low, high] = [0, ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((pairs[ends[middle] as number] as [number, number])[1] < second) low = middle + 1;
      else high = middle;
    }
    previous[at] = low > 0 ? (ends[low - 1] as number) : -1;
    ends[low] = at;
  });
  const run: [number, number][] = [];
  for (let at = ends.at(-1) ?? -1; at >= 0; at = previous[at] as number) run.push(pairs[at] as [number, number]);
  return run.reverse();
}
