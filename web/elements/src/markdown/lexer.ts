/** Markdown to tokens: marked's lexer with math beside it, and limits so that no text can stop the page. */

import type { Links, MarkedOptions, Token, Tokens } from "marked";

import { cjkLexer } from "./flanking.js";

/** Math as a token of ours. */
export interface MathToken extends Tokens.Generic {
  type: "math";
  text: string;
  /** Whether it is on its own. */
  display: boolean;
}

type Extension = (src: string) => Tokens.Generic | undefined;

/** A line longer than this is shown as it is: what lexers do with it may take longer than its square. */
const LONGEST_LINE = 10_000;
/** More than this nobody nests on purpose. */
const DEEPEST = 24;

const INLINE_MATH = /^\$\$([^$\n](?:[^$]|\\\$)*?)\$\$|^\\\(([^]+?)\\\)|^\\\[([^]+?)\\\]/;
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

/** No definitions yet; no name means anything by itself. */
export function noLinks(): Links {
  return Object.create(null) as Links;
}

/** What a text is made of. `links` are definitions that was before it, made by `noLinks`; those in it are added. */
export function lex(source: string, links: Links, withDollars = false): Token[] {
  if (!isBearable(source)) return [plain(source)];
  const lexer = cjkLexer(withDollars ? DOLLAR_OPTIONS : OPTIONS);
  lexer.tokens.links = links;
  try {
    return lexer.lex(source);
  } catch {
    return [plain(source)]; // the lexer recurses and may run out of stack
  }
}

/** A paragraph that is shown as it is. */
function plain(raw: string): Tokens.Generic {
  return { type: "plain", raw, text: raw };
}

/** Whether the lexer will be done with a text in reasonable time. */
export function isBearable(source: string): boolean {
  for (let start = 0; start < source.length;) {
    const newline = source.indexOf("\n", start);
    const end = newline < 0 ? source.length : newline;
    if (end - start > LONGEST_LINE || depthOf(source, start, end) > DEEPEST) return false;
    start = end + 1;
  }
  return true;
}

/** How deep a line is nested, by the marks and the blanks at its start. */
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
  return blanks > 8 * DEEPEST ? blanks : marks;
}

/**
 * Where a long text can be cut so that both parts mean what they meant together: a blank line outside of
 * fences, before what cannot belong to a list or quote above. 0 if there is none up to `most`, or before
 * what may hold blank lines, as HTML and math: then the blocks themselves say where they end.
 */
export function safeCut(source: string, least: number, most: number): number {
  let blank = false;
  for (const { start, line, isInFence } of linesOf(source)) {
    if (start > most) return 0;
    if (!isInFence && /^ {0,3}(?:<|\$\$|\\\[)/.test(line)) return 0;
    if (start >= least && !isInFence && blank && /^[^\s\-*+>\d|<:]/.test(line)) return start;
    blank = line.trim() === "";
  }
  return 0;
}

/** Where a text is cut that is not read as Markdown, or is one block without end: the last line up to `most` that is not in a fence. */
export function roughCut(source: string, most: number): number {
  let newest = 0;
  for (const { start, isInFence } of linesOf(source)) {
    if (start > most && newest > 0) return newest;
    if (!isInFence) newest = start;
  }
  return newest || source.length;
}

/** The lines of a text, and whether each is in a fence or ends one. */
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
