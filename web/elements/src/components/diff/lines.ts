/**
 * Finds the lines that two texts have in common.
 *
 * Theory of operation. This is a patience diff. Lines that occur exactly once in each text are candidates, and the
 * longest sequence of them that is in the same order in both texts are the anchors. The gap between two anchors is
 * usually short, and jsdiff compares it. If that takes too long, all lines of the gap count as removed and added. So
 * the cost for two long, similar texts grows with their length only, and other tasks of the page can run between two
 * gaps.
 */

import { diffArrays } from "diff";
import { breath } from "../table/sort.js";

/** Consecutive lines of one kind. */
export interface Change {
  readonly kind: "same" | "removed" | "added";
  readonly lines: readonly string[];
}

const SLICE_MS = 8;
/** Time limit for comparing one gap. */
const GAP_TIMEOUT_MS = 30;

/** Return the lines of a text. A line break at the end of the text does not begin another line. */
export function linesOfText(text: string): string[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/** Return both texts as runs of lines, in order. Two runs in a row always have different kinds. */
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

/** Return the changes between two anchors. */
function gap(before: readonly string[], after: readonly string[]): Change[] {
  if (before.length === 0 || after.length === 0)
    return [
      { kind: "removed", lines: before },
      { kind: "added", lines: after },
    ];
  // The types of jsdiff do not accept read-only arrays, but it does not change them.
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

/** Return the anchors as pairs of indexes, in order. */
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

/** Return the longest increasing subsequence by the second number, of pairs that are sorted by the first. */
function longestRising(pairs: readonly [number, number][]): [number, number][] {
  const ends: number[] = []; // at length - 1: index of the pair with the least second number that ends a sequence of that length
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
