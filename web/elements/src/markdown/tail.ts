/**
 * The last block of prose, which may still grow.
 *
 * Theory of operation. As a rule what is new must be read together with its block, for it may change what
 * was there: `draw` gets the block's tokens and changes only what differs. But mostly what
 * comes are words in a line, or lines in an open fence, that can mean nothing else wherever they are cut:
 * `grow` puts those after what is there and reads nothing again. Where it is not sure it does nothing.
 */

import type { Token, Tokens } from "marked";
import type { ProseBuilder } from "./builder.js";
import { isBearable } from "./lexer.js";
import { morph } from "./morph.js";

/** What means nothing in Markdown after a letter: letters, numbers, blanks and some marks. */
const PLAIN = /^(?:[\p{L}\p{M}\p{N} ,;.?!'"()-]|(?![!-~])[\p{P}\p{S}])*$/u;
/** A line that continues is not yet at the length from which it is shown as it is. */
const LONGEST_LINE = 9_000;
/** What may hold the words at the end of a block. */
const HOLDING = new Set(["paragraph", "heading", "text", "list", "list_item", "blockquote", "strong", "em", "del"]);

/** An open fence. */
interface Fence {
  readonly element: Node & { code: string };
  /** A line that closes it. */
  readonly closing: RegExp;
  /** Where the code begins. */
  readonly start: number;
}

export class Tail {
  /** What shows of it, in `place`. */
  nodes: Node[] = [];
  #token: Token | undefined;
  /** The source that shows, if it can grow. */
  #source = "";
  #words: Text | null = null;
  #fence: Fence | null = null;

  /** Shows a block that has the source `source`, completed as `tokens`. */
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

  /** Hands over what shows: it is final. */
  take(): Node[] {
    const { nodes } = this;
    this.nodes = [];
    this.#token = undefined;
    this.#words = this.#fence = null;
    return nodes;
  }

  /** Shows `source` if it is what shows and a plain end of it; returns whether it could. */
  grow(source: string): boolean {
    if ((this.#words ?? this.#fence) === null || !source.startsWith(this.#source)) return false;
    return this.#fence ? this.#growCode(source, this.#fence) : this.#growWords(source, this.#words as Text);
  }

  #growWords(source: string, node: Text): boolean {
    const before = this.#source.slice(this.#source.lastIndexOf("\n") + 1);
    const more = source.slice(this.#source.length);
    if (!PLAIN.test(more) || before.length + more.length > LONGEST_LINE) return false;
    const run = /\S*$/.exec(before)?.[0] ?? "";
    if ((!more.startsWith(" ") && !PLAIN.test(run)) || /www\./i.test(run + more)) return false;
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
    const end = /^ {0,3}(?:`{1,2}|~{1,2})$/.test(source.slice(last)) ? last : source.length;
    element.code = source.slice(start, end).replace(/\n$/, "");
    this.#source = source;
    return true;
  }
}

/** How many rows or items at the beginning of a block are those that it had before; its last one may differ. */
function sameRows(before: Token | undefined, token: Token | undefined): number {
  const [old, now] = [rowsOf(before), rowsOf(token)];
  if (old.head !== now.head) return 0;
  const most = Math.min(old.rows.length, now.rows.length) - 1;
  let at = 0;
  while (at < most && old.rows[at] === now.rows[at]) at += 1;
  return Math.max(0, at);
}

/** A list or table as texts: what all its rows have in common, and each. */
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

/** Changes what follows the first rows. */
function morphRows(old: Element, made: Element, kept: number): void {
  const [rows, more] = [old, made].map((one) => one.querySelector("tbody") ?? one) as [Element, Element];
  const label = made.getAttribute("aria-label");
  if (label !== null) old.setAttribute("aria-label", label);
  morph(rows, [...rows.childNodes].slice(kept), [...more.childNodes]);
}

/** The text at whose end words may be put. */
function wordsAt(token: Token | undefined, node: Node | undefined, source: string): Text | null {
  const line = source.slice(source.lastIndexOf("\n") + 1);
  if (!endsInText(token) || !/\p{L}/u.test(line) || line.includes("<") || source.includes("]:")) return null;
  let end = node;
  while (end?.lastChild) end = end.lastChild;
  const last = /\S*\s*$/.exec(line)?.[0] as string;
  return end instanceof Text && end.data.endsWith(last) ? end : null;
}

function endsInText(token: Token | undefined): boolean {
  if (token === undefined || !HOLDING.has(token.type)) return false;
  const { items, tokens } = token as Tokens.Generic;
  const inner = (items ?? tokens) as Token[] | undefined;
  return inner === undefined ? token.type === "text" : endsInText(inner.at(-1));
}

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
