/** Sorts rows: numbers by size, dates by time, text by the rules of the language. */

export type CellValue = string | number | boolean | null;
export type Row = readonly CellValue[];
export type Direction = "ascending" | "descending";

/** Type of the values in a column. */
export type ColumnKind = "number" | "date" | "text";

const DATE = /^\d{4}-\d{2}(?:-\d{2})?(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?$/;
const NUMBER =
  /^[-+−]?\s*[$€£¥]?\s*[-+−]?\d{1,3}(?:[, \u00a0\u202f']?\d{3})*(?:\.\d+)?\s*[%€]?$|^[-+−]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?$/;
/** Number of rows that decide the type of a column. */
const SAMPLE = 200;
/** Time after which a sort pauses, so that the page stays responsive. */
const SLICE_MS = 8;

/** Return the type of a column: `number` or `date` if all non-empty cells in its first rows fit, otherwise `text`. */
export function columnKind(rows: readonly Row[], column: number): ColumnKind {
  const sample = rows
    .slice(0, SAMPLE)
    .map((row) => row[column])
    .filter((value) => value != null && value !== "");
  if (sample.length === 0) return "text";
  if (sample.every((value) => typeof value === "number" || (typeof value === "string" && NUMBER.test(value.trim()))))
    return "number";
  return sample.every((value) => typeof value === "string" && DATE.test(value.trim())) ? "date" : "text";
}

/** Return a cell as a number, also `1,234.50`, `$5` and `12 %`; `NaN` if it is not a number. */
export function numberOf(value: CellValue | undefined): number {
  if (typeof value === "number") return value;
  if (typeof value !== "string") return Number.NaN;
  const bare = bareOf(value);
  return bare === "" ? Number.NaN : Number(bare);
}

/** Return a number as written without separators of thousands, currency and percent signs. */
function bareOf(value: string): string {
  return value.replace(/[\s\u00a0\u202f,'$€£¥%]/g, "").replace("−", "-");
}

/** Return the indexes of the rows in sorted order. Equal rows keep their order, and empty cells come last. */
export async function sorted(
  rows: readonly Row[],
  column: number,
  direction: Direction,
  locale: string,
): Promise<Int32Array> {
  const kind = columnKind(rows, column);
  const sign = direction === "ascending" ? 1 : -1;
  if (kind === "text") {
    const keys = rows.map((row) => (row[column] == null ? "" : String(row[column])));
    const { compare } = new Intl.Collator(locale, { numeric: true });
    return mergeSorted(keys.length, (one, other) => {
      const [first, second] = [keys[one] as string, keys[other] as string];
      if (first === second) return 0;
      if (first === "" || second === "") return first === "" ? 1 : -1;
      return sign * compare(first, second);
    });
  }
  const keys = Float64Array.from(rows, (row) =>
    kind === "number" ? numberOf(row[column]) : Date.parse(String(row[column] ?? "")),
  );
  return mergeSorted(keys.length, (one, other) => {
    const [first, second] = [keys[one] as number, keys[other] as number];
    if (Number.isNaN(first) || Number.isNaN(second)) return Number(Number.isNaN(first)) - Number(Number.isNaN(second));
    return sign * (first - second || orderOfDigits(rows[one]?.[column], rows[other]?.[column]));
  });
}

/**
 * Compare two whole numbers, written as texts, that are equal as doubles because they have too many digits.
 * Returns 0 for all other values.
 */
function orderOfDigits(first: CellValue | undefined, second: CellValue | undefined): number {
  if (typeof first !== "string" || typeof second !== "string" || Math.abs(numberOf(first)) <= Number.MAX_SAFE_INTEGER)
    return 0;
  const [one, other] = [bareOf(first), bareOf(second)];
  if (!/^-?\d+$/.test(one) || !/^-?\d+$/.test(other)) return 0;
  const difference = BigInt(one) - BigInt(other);
  return difference === 0n ? 0 : difference < 0n ? -1 : 1;
}

/**
 * Return the indexes from 0 to `length` in sorted order, by a stable bottom-up merge sort. Unlike `Array.sort` it can
 * pause, so a long table does not block the page.
 */
async function mergeSorted(length: number, compare: (one: number, other: number) => number): Promise<Int32Array> {
  let from = Int32Array.from({ length }, (_, at) => at);
  let to = new Int32Array(length);
  let slice = performance.now();
  for (let width = 1; width < length; width *= 2) {
    for (let start = 0; start < length; start += 2 * width) {
      merge(from, to, start, Math.min(start + width, length), Math.min(start + 2 * width, length), compare);
      if (performance.now() - slice > SLICE_MS) {
        await breath();
        slice = performance.now();
      }
    }
    [from, to] = [to, from];
  }
  return from;
}

/** Merge two sorted neighbouring runs of `from` into `to`. */
function merge(
  from: Int32Array,
  to: Int32Array,
  start: number,
  middle: number,
  end: number,
  compare: (one: number, other: number) => number,
): void {
  let [left, right] = [start, middle];
  for (let at = start; at < end; at += 1) {
    const takesLeft = left < middle && (right >= end || compare(from[left] as number, from[right] as number) <= 0);
    to[at] = from[takesLeft ? left++ : right++] as number;
  }
}

/** Pause, so that other tasks of the page can run. Unlike `setTimeout`, a message is not delayed by the browser. */
export function breath(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}
