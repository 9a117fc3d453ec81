/**
 * The last block of prose, which may still grow.
 *
 * Theory of operation. New text may change the meaning of its whole block, so in general the block is read again:
 * `draw` receives its tokens and changes only the nodes that differ. But most new text is plain words in a line, or
 * code in an open fence, and cannot change the text before it. `grow` appends such text without reading anything
 * again. If it is not sure, it does nothing and returns false, and the caller uses `draw`.
 */

import type { Token, Tokens } from "marked";
import type { ProseBuilder } from "./builder.js";
import { isBearable } from "./lexer.js";
import { morph } from "./morph.js";

/** Text without a meaning in Markdown after a letter: letters, numbers, blanks and some punctuation. */
const PLAIN = /^(?:[\p{L}\p{M}\p{N} ,;.?!'"()-]|(?![!-~])[\p{P}\p{S}])*$/u;
/** Longest line that is appended to. It is below the limit of the lexer, from which a line is shown as source. */
const LONGEST_LINE = 9_000;
/** Types of tokens that can contain the words at the end of a block. */
const HOLDING = new Set(["paragraph", "heading", "text", "list", "list_item", "blockquote", "strong", "em", "del"]);

/** A fence that is not closed yet. */
interface Fence {
  readonly element: Node & { code: string };
  /** Matches the line that closes the fence. */
  readonly closing: RegExp;
  /** Index of the code in the source. */
  readonly start: number;
}

/** The last block of one text, and what is needed to append to it. */
export class Tail {
  /** Nodes of the block. */
  nodes: Node[] = [];
  #token: Token | undefined;
  /** Source of the nodes. */
  #source = "";
  #words: Text | null = null;
  #fence: Fence | null = null;

  /**
   * Draw the block again.
   *
   * @param tokens Tokens of the completed source (see `complete`).
   * @param source Source without the completion.
   */
  draw(place: HTMLElement, builder: ProseBuilder, tokens: readonly Token[], source: string, isOpen: boolean): void {
    const [token] = tokens;
    const kept = isOpen && tokens.length === 1 && this.nodes.length === 1 ? sameRows(this.#token, token) : 0;
    const made = builder.blocks(tokens, isOpen, kept);
    if (kept > 0) morphRows(this.nodes[0] as Element, made[0] as Element, kept);
    else this.nodes = morph(place, this.nodes, made);
    this.#token = token;
    this.#words = isOpen ? wordsAt(tokens.at(-1), this.nodes.at(-1), source) : null;
    this.#fence = isOpen && tokens.length === 1 ? openFence(source, this.nodes[0]) : null;
    this.#source = source;
  }

  /** Return the nodes and forget them, because the block is final. */
  take(): Node[] {
    const { nodes } = this;
    this.nodes = [];
    this.#token = undefined;
    this.#words = this.#fence = null;
    return nodes;
  }

  /** Draw a source that extends the drawn one by plain text only. Returns `false`, without a change, for any other. */
  grow(source: string): boolean {
    if ((this.#words ?? this.#fence) === null || !source.startsWith(this.#source)) return false;
    return this.#fence ? this.#growCode(source, this.#fence) : this.#growWords(source, this.#words as Text);
  }

  #growWords(source: string, node: Text): boolean {
    const before = this.#source.slice(this.#source.lastIndexOf("\n") + 1);
    const more = source.slice(this.#source.length);
    if (!PLAIN.test(more) || before.length + more.length > LONGEST_LINE) return false;
    // Appended letters may complete a mark before them in the same word, or an address that becomes a link by itself.
    const run = /\S*$/.exec(before)?.[0] ?? "";
    if ((!more.startsWith(" ") && !PLAIN.test(run)) || /www\./i.test(run + more)) return false;
    // Trailing blanks wait: at the end of a line they may mean a line break, or nothing.
    const words = more.trimEnd();
    node.appendData(words);
    this.#source += words;
    return true;
  }

  #growCode(source: string, { element, closing, start }: Fence): boolean {
    const scanned = this.#source.lastIndexOf("\n") + 1;
    const fresh = source.slice(scanned);
    if (!isBearable(fresh) || fresh.split("\n").some((line) => closing.test(line))) return false;
    const last = source.lastIndexOf("\n") + 1;
    // A half closing fence is not shown: it would flash as code.
    const end = /^ {0,3}(?:`{1,2}|~{1,2})$/.test(source.slice(last)) ? last : source.length;
    element.code = source.slice(start, end).replace(/\n$/, "");
    this.#source = source;
    return true;
  }
}

/** Return the number of leading rows or items that are unchanged. The last one never counts, because it may grow. */
function sameRows(before: Token | undefined, token: Token | undefined): number {
  const [old, now] = [rowsOf(before), rowsOf(token)];
  if (old.head !== now.head) return 0;
  const most = Math.min(old.rows.length, now.rows.length) - 1;
  let at = 0;
  while (at < most && old.rows[at] === now.rows[at]) at += 1;
  return Math.max(0, at);
}

/** Return the texts of a list or table: what all rows have in common, and each row. */
function rowsOf(token: Token | undefined): { head: string; rows: string[] } {
  if (token?.type === "list") {
    const { ordered, start, loose, items } = token as Tokens.List;
    return { head: `${ordered}${start}${loose}`, rows: items.map(({ raw }) => raw) };
  }
  if (token?.type !== "table") return { head: "", rows: [] };
  const { header, align, rows } = token as Tokens.Table;
  const rowText = (cells: Tokens.TableCell[]) => cells.map(({ text }) => text).join("|");
  return { head: `${rowText(header)}\n${align.join()}`, rows: rows.map(rowText) };
}

/** Change the rows after the first `kept` ones; `made` has only the new rows. */
function morphRows(old: Element, made: Element, kept: number): void {
  const [rows, more] = [old, made].map((one) => one.querySelector("tbody") ?? one) as [Element, Element];
  const label = made.getAttribute("aria-label");
  if (label !== null) old.setAttribute("aria-label", label);
  morph(rows, [...rows.childNodes].slice(kept), [...more.childNodes]);
}

/** Return the text node that words can be appended to; `null` if appended words could have another meaning. */
function wordsAt(token: Token | undefined, node: Node | undefined, source: string): Text | null {
  const line = source.slice(source.lastIndexOf("\n") + 1);
  if (!endsInText(token) || !/\p{L}/u.test(line) || line.includes("<") || source.includes("]:")) return null;
  let end = node;
  while (end?.lastChild) end = end.lastChild;
  // The last word must be in the node as it is in the source. Otherwise the source ends with a mark or an entity, and
  // words would be appended in the wrong place.
  const last = /\S*\s*$/.exec(line)?.[0] as string;
  return end instanceof Text && end.data.endsWith(last) ? end : null;
}

/** Return whether the last words of a token are plain text that more words can follow. */
function endsInText(token: Token | undefined): boolean {
  if (token === undefined || !HOLDING.has(token.type)) return false;
  const { items, tokens } = token as Tokens.Generic;
  const inner = (items ?? tokens) as Token[] | undefined;
  return inner === undefined ? token.type === "text" : endsInText(inner.at(-1));
}

/** Return the open fence of a block; `null` if the block is not one, or is shown as something else. */
function openFence(source: string, node: Node | undefined): Fence | null {
  const [opening = "", mark = ""] = /^(`{3,}|~{3,})[^\n]*\n/.exec(source) ?? [];
  if (opening === "" || node?.nodeName !== "ARP-CODE" || !(node as Node & { unfinished?: boolean }).unfinished)
    return null;
  return {
    element: node as Fence["element"],
    closing: new RegExp(`^ {0,3}${mark}${mark[0]}* *$`),
    start: opening.length,
  };
}
