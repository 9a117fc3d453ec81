/** The difference of two texts as rows: what went, what came, what stays, with words marked in lines that changed. */

import { diffWordsWithSpace, FILE_HEADERS_ONLY, formatPatch, type StructuredPatchHunk } from "diff";
import { changesOf, linesOfText } from "./lines.js";

/** A stretch of a line; changed stretches are what the other line does not have. */
export interface Segment {
  readonly text: string;
  readonly isChanged: boolean;
}

/** A line of either text, or of both. */
export interface DiffLine {
  readonly kind: "same" | "removed" | "added";
  /** Number in each text, from 1; `null` where it is not. */
  readonly before: number | null;
  readonly after: number | null;
  readonly text: string;
  /** The words that changed, where the line has a partner that is like it. */
  readonly segments: readonly Segment[] | null;
}

/** Lines that are the same in both, and not shown until wanted. */
export interface Fold {
  readonly kind: "fold";
  readonly lines: readonly DiffLine[];
}

export interface Difference {
  readonly rows: readonly (DiffLine | Fold)[];
  readonly added: number;
  readonly removed: number;
}

/** Unchanged lines around a change that are shown. */
const CONTEXT = 3;
/** Longer lines are not compared word by word. */
const LONGEST_LINE = 600;
const MOST_PAIRS = 400;
/** So much of a line must stay, or marked words would only confuse. */
const LIKENESS = 0.35;

/** Compares two texts without holding the page up. */
export async function difference(before: string, after: string): Promise<Difference> {
  const changes = await changesOf(linesOfText(before), linesOfText(after));
  const rows: (DiffLine | Fold)[] = [];
  let [old, now, pairs, added, removed] = [1, 1, 0, 0, 0];
  changes.forEach(({ kind, lines }, at) => {
    const next = changes[at + 1];
    if (kind === "same") {
      const same = lines.map((text, line): DiffLine => ({
        kind,
        before: old + line,
        after: now + line,
        text,
        segments: null,
      }));
      rows.push(...folded(same, at > 0, next !== undefined));
    } else if (kind === "removed") {
      const partners = next?.kind === "added" ? next.lines : [];
      rows.push(
        ...lines.map((text, line): DiffLine => ({
          kind,
          before: old + line,
          after: null,
          text,
          segments: words(text, partners[line], (pairs += 1), "added"),
        })),
      );
    } else {
      const last = changes[at - 1];
      const partners = last?.kind === "removed" ? last.lines : [];
      rows.push(
        ...lines.map((text, line): DiffLine => ({
          kind,
          before: null,
          after: now + line,
          text,
          segments: words(partners[line], text, (pairs += 1), "removed"),
        })),
      );
    }
    if (kind !== "added") old += lines.length;
    if (kind !== "removed") now += lines.length;
    if (kind === "added") added += lines.length;
    if (kind === "removed") removed += lines.length;
  });
  return { rows, added, removed };
}

/** Unchanged lines: those near a change, and a fold for the rest. */
function folded(lines: readonly DiffLine[], hasBefore: boolean, hasAfter: boolean): (DiffLine | Fold)[] {
  const head = hasBefore ? CONTEXT : 0;
  const tail = hasAfter ? CONTEXT : 0;
  if (lines.length <= head + tail + 1 && (hasBefore || hasAfter)) return [...lines];
  const middle = lines.slice(head, lines.length - tail);
  return [...lines.slice(0, head), { kind: "fold", lines: middle }, ...lines.slice(lines.length - tail)];
}

function words(
  before: string | undefined,
  after: string | undefined,
  pair: number,
  leftOut: "added" | "removed",
): Segment[] | null {
  if (before === undefined || after === undefined || pair > 2 * MOST_PAIRS) return null;
  if (before.length > LONGEST_LINE || after.length > LONGEST_LINE) return null;
  const parts = diffWordsWithSpace(before, after);
  const same = parts.reduce((sum, { added, removed, value }) => sum + (added || removed ? 0 : value.trim().length), 0);
  if (same < LIKENESS * Math.max(before.trim().length, after.trim().length)) return null;
  return parts
    .filter((part) => !part[leftOut])
    .map(({ value, added, removed }) => ({ text: value, isChanged: added || removed }));
}

const SIGNS = { same: " ", removed: "-", added: "+" } as const;

/** A difference as `diff -u` would tell it. */
export function patchOf({ rows }: Difference, oldFileName: string, newFileName: string): string {
  const hunks: StructuredPatchHunk[] = [];
  let hunk: StructuredPatchHunk | null = null;
  let [old, now] = [1, 1];
  for (const row of rows) {
    if (row.kind === "fold") {
      hunk = null;
      [old, now] = [old + row.lines.length, now + row.lines.length];
      continue;
    }
    if (hunk === null) hunks.push((hunk = { oldStart: old, oldLines: 0, newStart: now, newLines: 0, lines: [] }));
    hunk.lines.push(SIGNS[row.kind] + row.text);
    if (row.kind !== "added") [old, hunk.oldLines] = [old + 1, hunk.oldLines + 1];
    if (row.kind !== "removed") [now, hunk.newLines] = [now + 1, hunk.newLines + 1];
  }
  return formatPatch(
    { oldFileName, newFileName, oldHeader: undefined, newHeader: undefined, hunks },
    FILE_HEADERS_ONLY,
  );
}
