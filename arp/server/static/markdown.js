/**
 * Markdown as blocks: text in, a tree of plain objects out, no document. A block is `{t, ...}` with
 * t one of p, h, code, list, quote, rule, table. Raw HTML is text. Linear in the length of the text
 * for the nesting that is followed; deeper nesting stays text.
 */

import { parseInline } from "./inline.js";

const DEEPEST = 8;
const FENCE = /^( *)(`{3,}|~{3,})([^`]*)$/;
const MARKER = /^( *)([-*+]|\d{1,9}[.)])(?: +(?=\S)|\s*$)/;

/** Parses a text whole; `open` when more may follow (see inline.js). */
export function parse(text, open = false) {
  return blocks(text.split(/\r\n?|\n/), open, 0);
}

/**
 * Cuts a text into pieces that parse alike alone: between paragraphs, never within a fence or a
 * list. Gives the place where each piece starts. What is before the last but one stays as it is,
 * however the text goes on.
 */
export function pieceStarts(text, from = 0) {
  const starts = [from];
  const state = { fence: null, blank: false, list: false };
  for (let at = from; at < text.length;) {
    const next = text.indexOf("\n", at) + 1 || text.length + 1;
    const line = text.slice(at, next - 1);
    if (startsPiece(line, state) && at > from) starts.push(at);
    at = next;
  }
  return starts;
}

function startsPiece(line, state) {
  const blankBefore = state.blank && !state.fence;
  state.blank = !line.trim();
  const inFence = state.fence !== null;
  trackFence(line, state);
  if (inFence || state.blank) return false;
  const item = MARKER.test(line);
  const goesOn = state.list && (item || /^\s/.test(line));
  if (!goesOn && (blankBefore || item)) state.list = item;
  return blankBefore && !goesOn;
}

function trackFence(line, state) {
  const fence = FENCE.exec(line);
  if (state.fence === null) state.fence = fence ? fence[2] : null;
  else if (closes(line, state.fence)) state.fence = null;
}

function closes(line, fence) {
  const mark = line.trim();
  return mark.length >= fence.length && mark === fence[0].repeat(mark.length);
}

function blocks(lines, open, depth) {
  const found = [];
  const reader = { lines, at: 0, open, depth };
  while (reader.at < lines.length) {
    if (!lines[reader.at].trim()) reader.at += 1;
    else found.push(block(reader));
  }
  return found;
}

function block(reader) {
  const nested = reader.depth < DEEPEST;
  return (
    code(reader) ??
    heading(reader) ??
    rule(reader) ??
    (nested ? (quote(reader) ?? list(reader)) : null) ??
    table(reader) ??
    paragraph(reader)
  );
}

function inline(reader, text) {
  return parseInline(text, reader.open && reader.at >= reader.lines.length);
}

function code(reader) {
  const opening = FENCE.exec(reader.lines[reader.at]);
  if (!opening) return null;
  const [, indent, fence, info] = opening;
  const body = [];
  for (reader.at += 1; reader.at < reader.lines.length; reader.at += 1) {
    const line = reader.lines[reader.at];
    if (closes(line, fence)) break;
    body.push(line.slice(Math.min(indent.length, line.search(/\S|$/))));
  }
  reader.at += 1;
  const language = /^[a-z0-9+#-]{1,32}/i.exec(info.trim())?.[0].toLowerCase() ?? "";
  return { t: "code", language, text: body.join("\n") };
}

function heading(reader) {
  const opening = /^ {0,3}(#{1,6})(?=\s|$)/.exec(reader.lines[reader.at]);
  if (!opening) return null;
  const rest = reader.lines[reader.at].slice(opening[0].length).trim();
  const text = /^#+$/.test(rest) ? "" : rest.replace(/\s#{1,9}$/, "");
  reader.at += 1;
  return { t: "h", level: opening[1].length, children: inline(reader, text) };
}

function rule(reader) {
  const marks = reader.lines[reader.at].replace(/\s/g, "");
  if (marks.length < 3 || !/^[-*_]/.test(marks) || marks !== marks[0].repeat(marks.length))
    return null;
  reader.at += 1;
  return { t: "rule" };
}

function quote(reader) {
  const inner = [];
  while (/^ {0,3}>/.test(reader.lines[reader.at] ?? "")) {
    inner.push(reader.lines[reader.at].replace(/^ {0,3}> ?/, ""));
    reader.at += 1;
  }
  if (!inner.length) return null;
  const open = reader.open && reader.at >= reader.lines.length;
  return { t: "quote", children: blocks(inner, open, reader.depth + 1) };
}

function list(reader) {
  const first = MARKER.exec(reader.lines[reader.at]);
  if (!first) return null;
  const ordered = /\d/.test(first[2]);
  const block = {
    t: "list",
    ordered,
    start: ordered ? parseInt(first[2], 10) : 1,
    loose: false,
    items: [],
  };
  for (let marker = first; marker;) {
    const { lines, loose } = itemLines(reader, marker);
    const ended = reader.at >= reader.lines.length;
    block.items.push(blocks(lines, reader.open && ended, reader.depth + 1));
    marker = sameList(reader, ordered);
    block.loose ||= loose && marker !== null;
  }
  return block;
}

function sameList(reader, ordered) {
  const marker = MARKER.exec(reader.lines[reader.at] ?? "");
  return marker && /\d/.test(marker[2]) === ordered ? marker : null;
}

/**
 * Takes the lines of one item, without their indent; stops before the next item or what ends the
 * list.
 */
function itemLines(reader, marker) {
  const { lines } = reader;
  const outer = marker[1].length;
  const taken = [lines[reader.at].slice(marker[0].length)];
  let blank = false;
  for (reader.at += 1; reader.at < lines.length; reader.at += 1) {
    const line = lines[reader.at];
    const indent = line.search(/\S/);
    if (
      indent >= 0 &&
      indent < outer + 2 &&
      (MARKER.test(line) || blank || interrupts(lines, reader.at))
    )
      break;
    blank = indent < 0;
    taken.push(line.slice(Math.min(Math.max(indent, 0), marker[0].length)));
  }
  return { lines: taken, loose: blank };
}

function table(reader) {
  const { lines, at } = reader;
  if (!startsTable(lines, at)) return null;
  const align = cells(lines[at + 1]).map(alignment);
  const head = cells(lines[at]).map((cell) => parseInline(cell));
  const rows = [];
  for (reader.at += 2; (lines[reader.at] ?? "").includes("|"); reader.at += 1) {
    const row = cells(lines[reader.at]);
    rows.push(head.map((_, column) => parseInline(row[column] ?? "")));
  }
  return { t: "table", align, head, rows };
}

function startsTable(lines, at) {
  const rule = lines[at + 1] ?? "";
  if (!lines[at].includes("|") || !rule.includes("-") || !/^[\s|:-]+$/.test(rule)) return false;
  return (
    cells(rule).every((cell) => /^:?-+:?$/.test(cell)) &&
    cells(rule).length === cells(lines[at]).length
  );
}

function cells(line) {
  const row = line
    .trim()
    .replace(/^\|/, "")
    .replace(/(?<!\\)\|$/, "");
  return row.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
}

function alignment(cell) {
  if (!cell.endsWith(":")) return "start";
  return cell.startsWith(":") ? "center" : "end";
}

function paragraph(reader) {
  const taken = [];
  do {
    taken.push(reader.lines[reader.at].trim());
    reader.at += 1;
  } while (reader.at < reader.lines.length && !endsParagraph(reader.lines, reader.at));
  return { t: "p", children: inline(reader, taken.join("\n")) };
}

function endsParagraph(lines, at) {
  const line = lines[at];
  return !line.trim() || interrupts(lines, at) || /^ *(?:[-*+]|1[.)]) +\S/.test(line);
}

function interrupts(lines, at) {
  const line = lines[at];
  return (
    FENCE.test(line) ||
    /^ {0,3}(?:#{1,6}\s|>)/.test(line) ||
    startsTable(lines, at) ||
    rule({ lines, at }) !== null
  );
}
