/**
 * Splits Markdown into tokens: the lexer of marked, extended by math and by limits. The lexer needs quadratic time for
 * some long lines and recurses for nested ones; without limits, such a text would freeze the page.
 */

import type { Links, MarkedOptions, Token, Tokens } from "marked";

import { cjkLexer } from "./flanking.js";

/** Token of a formula. */
export interface MathToken extends Tokens.Generic {
  type: "math";
  text: string;
  /** Whether it is a display formula, on a line of its own. */
  display: boolean;
}

type Extension = (src: string) => Tokens.Generic | undefined;

/** Longest line in characters that is read as Markdown; the time for a line may grow faster than its square. */
const LONGEST_LINE = 10_000;
/** Deepest nesting of a line that is read as Markdown; no one nests deeper on purpose. */
const DEEPEST = 24;

const INLINE_MATH = /^\$\$([^$\n](?:[^$]|\\\$)*?)\$\$|^\\\(([^]+?)\\\)|^\\\[([^]+?)\\\]/;
/** `$…$` without blanks just inside the dollars and without a digit after them: `$5 and $6` are amounts of money. */
const DOLLAR_MATH = /^\$(?![\s$])((?:\\\$|[^$\n])+?)(?<![\s\\])\$(?![\d$])/;
const BLOCK_MATH = /^ {0,3}(?:\$\$[ \t]*\n?([^]+?)\n?[ \t]*\$\$|\\\[[ \t]*\n?([^]+?)\n?[ \t]*\\\])[ \t]*(?:\n|$)/;

const blockMath: Extension = (src) => {
  const found = BLOCK_MATH.exec(src);
  return found ? math(found[0], found[1] ?? found[2], true) : undefined;
};
const inlineMath: Extension = (src) => {
  const found = INLINE_MATH.exec(src);
  return found ? math(found[0], found[1] ?? found[2] ?? found[3], found[2] === undefined) : undefined;
};
const dollarMath: Extension = (src) => {
  const found = DOLLAR_MATH.exec(src);
  return found ? math(found[0], found[1], false) : undefined;
};

function math(raw: string, text = "", display = false): MathToken {
  return { type: "math", raw, text: text.trim(), display };
}

/** Return a function that finds the next possible start of math, as marked needs it to end a piece of text there. */
function startOf(pattern: RegExp): (src: string) => number | void {
  return (src) => {
    const at = src.search(pattern);
    return at < 0 ? undefined : at;
  };
}

const OPTIONS = options([inlineMath], /\$\$|\\[([]/);
const DOLLAR_OPTIONS = options([inlineMath, dollarMath], /\$|\\[([]/);

function options(inline: Extension[], start: RegExp): MarkedOptions {
  return {
    gfm: true,
    extensions: {
      renderers: {},
      childTokens: {},
      block: [blockMath],
      startBlock: [startOf(/\n {0,3}(?:\$\$|\\\[)/)],
      inline,
      startInline: [startOf(start)],
    },
  };
}

/** Return an empty table of link definitions. It has no prototype: `[constructor]` must not find a definition. */
export function noLinks(): Links {
  return Object.create(null) as Links;
}

/**
 * Return the tokens of a text.
 *
 * @param links Link definitions from the text before, created by `noLinks`; those of this text are added.
 * @param withDollars Whether `$…$` is math too.
 */
export function lex(source: string, links: Links, withDollars = false): Token[] {
  if (!isBearable(source)) return [plain(source)];
  const lexer = cjkLexer(withDollars ? DOLLAR_OPTIONS : OPTIONS);
  lexer.tokens.links = links;
  try {
    return lexer.lex(source);
  } catch {
    return [plain(source)]; // the lexer recurses, so it may run out of stack
  }
}

/** Return the token of a paragraph that is shown as source. */
function plain(raw: string): Tokens.Generic {
  return { type: "plain", raw, text: raw };
}

/** Return whether the lexer can read a text in reasonable time. */
export function isBearable(source: string): boolean {
  for (let start = 0; start < source.length;) {
    const newline = source.indexOf("\n", start);
    const end = newline < 0 ? source.length : newline;
    if (end - start > LONGEST_LINE || depthOf(source, start, end) > DEEPEST) return false;
    start = end + 1;
  }
  return true;
}

/** Return the depth of nesting of a line, by the marks and blanks at its start. */
function depthOf(source: string, start: number, end: number): number {
  const isBlank = (at: number) => at >= end || source[at] === " " || source[at] === "\t";
  let marks = 0;
  let blanks = 0;
  for (let at = start; at < end; at += 1) {
    const sign = source[at] as string;
    if (sign === " ") blanks += 1;
    else if (sign === "\t") blanks += 4;
    else if (sign === ">" || ("-*+.)".includes(sign) && isBlank(at + 1))) marks += 1;
    else if (sign < "0" || sign > "9") break;
  }
  // Each level of a nested list is indented, so very deep indentation also counts as nesting.
  return blanks > 8 * DEEPEST ? blanks : marks;
}

/**
 * Return an index at which a long text can be cut without changing its meaning: after a blank line outside of fences,
 * before a line that cannot belong to a list or quote above it.
 *
 * Returns 0 if there is none up to `most`, and if HTML or math comes first. These may contain blank lines, so only the
 * lexer can find their end.
 */
export function safeCut(source: string, least: number, most: number): number {
  let blank = false;
  for (const { start, line, isInFence } of linesOf(source)) {
    if (start > most) return 0;
    if (!isInFence && /^ {0,3}(?:<|\$\$|\\\[)/.test(line)) return 0;
    // A line that begins with a blank, a list mark, a digit or `>` may belong to a list or quote above: cut there, a
    // numbered list would start again.
    if (start >= least && !isInFence && blank && /^[^\s\-*+>\d|<:]/.test(line)) return start;
    blank = line.trim() === "";
  }
  return 0;
}

/**
 * Return an index at which to cut a text that cannot be read as Markdown, or that is one very long block: the last line
 * up to `most` that is not in a fence. The cut may change the meaning of the text.
 */
export function roughCut(source: string, most: number): number {
  let newest = 0;
  for (const { start, isInFence } of linesOf(source)) {
    if (start > most && newest > 0) return newest;
    if (!isInFence) newest = start;
  }
  return newest || source.length;
}

/** Yield the lines of a text, and whether each is inside of a fence or ends one. */
function* linesOf(
  source: string,
): Generator<{ readonly start: number; readonly line: string; readonly isInFence: boolean }> {
  let fence = "";
  for (let start = 0; start < source.length;) {
    const newline = source.indexOf("\n", start);
    const end = newline < 0 ? source.length : newline;
    const line = source.slice(start, end);
    yield { start, line, isInFence: fence !== "" };
    if (fence === "") fence = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})/.exec(line)?.[1] ?? "";
    else if (/^ {0,3}(`{3,}|~{3,})[ \t]*$/.exec(line)?.[1]?.startsWith(fence)) fence = "";
    start = end + 1;
  }
}
