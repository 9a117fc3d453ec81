/** The difference of two texts as rows: removed, added and unchanged lines, with the changed words of a line marked. */

import { diffWordsWithSpace, FILE_HEADERS_ONLY, formatPatch, type StructuredPatchHunk } from "diff";
import { changesOf, linesOfText } from "./lines.js";

/** A piece of a line. A changed piece is missing in the other line. */
export interface Segment {
  readonly text: string;
  readonly isChanged: boolean;
}

/** A line of one text, or of both. */
export interface DiffLine {
  readonly kind: "same" | "removed" | "added";
  /** Line number in each text, from 1; `null` if the line is not in that text. */
  readonly before: number | null;
  readonly after: number | null;
  readonly text: string;
  /** Pieces of the line with the changed words; `null` unless a similar line replaces it, or it replaces one. */
  readonly segments: readonly Segment[] | null;
}

/** Unchanged lines that are hidden until the user asks for them. */
export interface Fold {
  readonly kind: "fold";
  readonly lines: readonly DiffLine[];
}

/** The rows of a comparison, and the numbers of added and removed lines. */
export interface Difference {
  readonly rows: readonly (DiffLine | Fold)[];
  readonly added: number;
  readonly removed: number;
}

/** Number of unchanged lines that are shown before and after a change. */
const CONTEXT = 3;
/** Most characters of a line that is compared word by word. */
const LONGEST_LINE = 600;
const MOST_PAIRS = 400;
/** Least share of a line that must be unchanged to mark words: with less, the marks would only confuse. */
const LIKENESS = 0.35;

/** Compare two texts without blocking the page. */
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

/** Return unchanged lines with those far from a change in a fold. */
function folded(lines: readonly DiffLine[], hasBefore: boolean, hasAfter: boolean): (DiffLine | Fold)[] {
  const head = hasBefore ? CONTEXT : 0;
  const tail = hasAfter ? CONTEXT : 0;
  if (lines.length <= head + tail + 1 && (hasBefore || hasAfter)) return [...lines];
  const middle = lines.slice(head, lines.length - tail);
  return [...lines.slice(0, head), { kind: "fold", lines: middle }, ...lines.slice(lines.length - tail)];
}

/**
 * Return the pieces of a line that is compared with its partner; `null` if they are not compared or too different.
 *
 * @param pair Number of the comparison; after `2 * MOST_PAIRS` no words are compared, because that takes too long.
 * @param leftOut Kind of pieces that belong to the partner only.
 */
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

/** Return a difference in the format of `diff -u`. */
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
