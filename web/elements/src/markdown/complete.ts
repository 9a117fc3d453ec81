/**
 * Completes Markdown that is still being written, so that it already looks as it will when it is finished: `**bo` is
 * bold, half a link is its text, the header of a table is a table.
 *
 * Theory of operation. Only the end of the text can be unfinished. A last line that may still become several things
 * (`-`, `#`) is held back. The header of a table gets its delimiter row. In the last stretch of inline text, a scanner
 * keeps a stack of open marks; at the end it closes them, innermost first, or removes marks without content. Without
 * this, marks would flash as characters and then change the text after them.
 */

/** Return a text with a possibly unfinished last block, completed for display. */
export function complete(source: string): string {
  // Code in a fence has no marks to complete; only half of a closing fence is held back.
  const fence = /^ {0,3}(`{3,}|~{3,})[^\n]*/.exec(source);
  if (fence) return source.replace(/\n {0,3}(?:`{1,2}|~{1,2})$/, "\n");
  const shown = completeTable(heldBack(source));
  const start = inlineStart(shown);
  return shown.slice(0, start) + completeInline(shown.slice(start));
}

/** Return a text without its last line if that is still ambiguous: a list mark, hashes, a rule, half a fence. */
function heldBack(source: string): string {
  const start = source.lastIndexOf("\n") + 1;
  const line = source.slice(start);
  // Drawn now, such a line would appear as a list, a heading or a rule and change into something else a moment later.
  const isUndecided =
    /^\s*(?:>\s*)*(?:(?:[-*+]|\d{1,9}[.)]?)(?:\s+\[[ xX]?\]?)?|#{1,6}|[-=*_]+|`{1,2}|~{1,2})\s*$/.test(line) ||
    /^\s*(?:>\s*)+$/.test(line) ||
    /^\s*(?:\$|\\)$/.test(line);
  return isUndecided ? source.slice(0, start) : source;
}

/** Return a text with the delimiter row (`| --- |`) added if it ends with the header of a table. */
function completeTable(source: string): string {
  const start = Math.max(0, source.lastIndexOf("\n\n") + 2 * Number(source.includes("\n\n")));
  const [head = "", rule, ...rows] = source.slice(start).split("\n");
  if (!/^ {0,3}\|/.test(head) || rows.length > 0) return source;
  // A second line with other characters is not a delimiter row, so the first line is not a header.
  if (rule !== undefined && !/^[\s|:-]*$/.test(rule)) return source;
  const whole = /\|\s*$/.test(head) && head.trim().length > 1 ? head.trimEnd() : `${completeInline(head)} |`;
  const cells = whole.replace(/\\\|/g, "").split("|").length - 2;
  return `${source.slice(0, start)}${whole}\n|${" --- |".repeat(Math.max(1, cells))}`;
}

/** Return the index of the last stretch of inline text: after the last blank line, block mark or cell border. */
function inlineStart(source: string): number {
  const paragraph = source.lastIndexOf("\n\n") + 1;
  let start = paragraph;
  const marks = /\n(?=[ \t]*(?:[-*+][ \t]|\d{1,9}[.)][ \t]|#{1,6}[ \t]|>))/g;
  marks.lastIndex = Math.max(0, paragraph - 1);
  for (let found = marks.exec(source); found; found = marks.exec(source)) start = found.index + 1;
  const line = source.lastIndexOf("\n") + 1;
  if (/^ {0,3}\|/.test(source.slice(line))) return source.lastIndexOf("|") + 1;
  const mark = /^\s*(?:>\s?|[-*+][ \t]+|\d{1,9}[.)][ \t]+|#{1,6}[ \t]+)*/.exec(source.slice(start));
  return start + (mark?.[0].length ?? 0);
}

/** An open mark of emphasis. */
interface Open {
  readonly mark: string;
  /** Index of the mark in the output. */
  readonly at: number;
}

/** Return inline text with its open marks closed; marks without content are left out. */
export function completeInline(source: string): string {
  const open: Open[] = [];
  let out = "";
  let at = 0;
  while (at < source.length) {
    const sign = source[at] as string;
    const rest = source.slice(at, at + 2);
    if (sign === "\\" && !/^\\[([]/.test(rest)) {
      if (rest.length === 2) out += rest; // a backslash at the end is held back: it may escape the next mark
      at += 2;
    } else if (rest === "$$" || rest === "\\(" || rest === "\\[") {
      // Math has marks of its own (`_`, `*`), so it is copied whole; an open formula is held back until it is closed.
      const end = source.indexOf(rest === "$$" ? "$$" : rest === "\\(" ? "\\)" : "\\]", at + 2);
      if (end < 0) break;
      out += source.slice(at, end + 2);
      at = end + 2;
    } else if (sign === "`") {
      const run = runOf(source, at);
      const end = closingRun(source, at + run, run);
      if (end < 0) {
        // Backticks at the end may be the first part of the closing run, so they are held back.
        const code = source.slice(at + run).replace(/`+$/, "");
        if (code.trim() !== "") out += "`".repeat(run) + code + (code.endsWith("`") ? " " : "") + "`".repeat(run);
        break;
      }
      out += source.slice(at, end);
      at = end;
    } else if (sign === "[" || rest === "![") {
      const link = linkAt(source, at);
      // An unfinished link shows its text only. An unfinished picture is left out: its address would be incomplete.
      if (link.isWhole) out += source.slice(at, link.end);
      else if (sign !== "!") out += completeInline(link.label);
      at = link.end;
    } else if (sign === "*" || sign === "_" || rest === "~~") {
      const run = runOf(source, at);
      out = emphasis(source, at, run, open, out);
      at += run;
    } else {
      out += sign;
      at += 1;
    }
  }
  return closed(out, open);
}

/**
 * Return the output with its open marks closed. A mark without content is removed, because it would show as characters.
 * Closing marks go before trailing blanks: after a blank, Markdown would not recognise them.
 */
function closed(out: string, open: Open[]): string {
  let text = out;
  let marks = "";
  for (const { mark, at } of open.reverse()) {
    if (text.slice(at + mark.length).trim() === "" && marks === "") text = text.slice(0, at);
    else marks += mark;
  }
  if (marks === "") return text;
  const kept = text.trimEnd();
  return kept + marks + text.slice(kept.length);
}

/** Apply a run of `*`, `_` or `~`: it closes an open mark, opens one, or is text. Returns the new output. */
function emphasis(source: string, at: number, run: number, open: Open[], out: string): string {
  const sign = source[at] as string;
  const before = source[at - 1] ?? " ";
  const after = source[at + run];
  // `***` is read as `**` and `*`: each is closed by itself, as in `***a** b*`.
  const marks = sign === "~" ? ["~~"] : run >= 3 ? [sign + sign, sign] : [sign.repeat(run)];
  let text = out;
  const canClose = !/\s/.test(before);
  for (const mark of [...marks].reverse()) {
    const top = open.at(-1);
    if (canClose && top?.mark === mark) {
      open.pop();
      text += mark;
    } else if (canClose && after === undefined && top?.mark.startsWith(mark)) {
      return text; // the first half of a closing `**`: as a character it would flash and disappear
    } else if (after !== undefined && !/\s/.test(after) && !(sign === "_" && /\w/.test(before))) {
      open.push({ mark, at: text.length });
      text += mark;
    } else if (after !== undefined) {
      text += mark; // neither opens nor closes, so it is text
    }
  }
  return text;
}

/** Return the end and the text of the link or picture at a bracket, and whether it is complete. */
function linkAt(source: string, at: number): { isWhole: boolean; end: number; label: string } {
  const start = source.indexOf("[", at) + 1;
  let depth = 1;
  let end = start;
  for (; end < source.length && depth > 0; end += 1) {
    const sign = source[end];
    if (sign === "\\") end += 1;
    else if (sign === "[") depth += 1;
    else if (sign === "]") depth -= 1;
  }
  if (depth > 0) return { isWhole: false, end: source.length, label: source.slice(start) };
  const label = source.slice(start, end - 1);
  if (end >= source.length) return { isWhole: /^\d{1,3}$/.test(label), end: source.length, label }; // `[2]` refers to a source and is complete without an address
  if (source[end] !== "(") return { isWhole: true, end, label };
  const close = closingParenthesis(source, end);
  return close < 0 ? { isWhole: false, end: source.length, label } : { isWhole: true, end: close, label };
}

/** Return the index after the parenthesis that closes an address, or the end of its paragraph; -1 if neither comes. */
function closingParenthesis(source: string, at: number): number {
  let depth = 0;
  for (let end = at; end < source.length; end += 1) {
    const sign = source[end];
    if (sign === "\\") end += 1;
    else if (sign === "(") depth += 1;
    else if (sign === ")") depth -= 1;
    if (depth === 0) return end + 1;
    if (sign === "\n" && source[end + 1] === "\n") return end; // an address ends with its paragraph, closed or not
  }
  return -1;
}

/** Return the number of equal characters at an index. */
function runOf(source: string, at: number): number {
  let end = at + 1;
  while (source[end] === source[at]) end += 1;
  return end - at;
}

/** Return the index after the next run of exactly `length` backticks, or -1. */
function closingRun(source: string, from: number, length: number): number {
  for (let at = source.indexOf("`", from); at >= 0;) {
    const run = runOf(source, at);
    if (run === length) return at + run;
    at = source.indexOf("`", at + run);
  }
  return -1;
}
