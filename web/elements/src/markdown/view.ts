/**
 * Prose that may grow at its end.
 *
 * Theory of operation. What is final is a prefix of the text: its blocks are drawn once and never
 * touched again. Only the rest, as a rule the last block, is read again when more comes (`tail.ts`). Blocks
 * are in parts, so that they cost nothing while more is laid out (`parts.ts`). Long texts are drawn in
 * slices, a few milliseconds a frame. A definition (`[name]: url`) may be below what refers to it, so
 * blocks with brackets are kept with their source and drawn again when a new one is final.
 */

import type { Token } from "marked";
import type { ArpContext } from "../base/context.js";
import { ProseBuilder } from "./builder.js";
import { complete } from "./complete.js";
import { isBearable, lex, noLinks, roughCut, safeCut } from "./lexer.js";
import { morph } from "./morph.js";
import { Parts } from "./parts.js";
import { Tail } from "./tail.js";

/** So much of a text is read at once. */
const SLICE_CHARACTERS = 1_000;
const MOST_CHARACTERS = 32_000;
/** One paragraph, list or quote that is longer than this is cut: reading it takes longer than its length. */
const LONGEST_BLOCK = 8 * MOST_CHARACTERS;
/** Blocks of any length are read in a time that grows as they do. */
const LONG_BLOCKS = new Set(["code", "table", "html", "math"]);
/** So long a frame may be busy with prose. */
const BUDGET_MS = 4;
/** A text that is being written takes a sixth of the time at most, its layout and painting counted in: the rest is for who uses the page. */
const PAUSE_FACTOR = 5;
const LONGEST_PAUSE_MS = 100;

/** What of its context prose is made with. */
const INPUTS = ["t", "dollarMath", "citations"] as const;

interface Referring {
  readonly source: string;
  readonly place: HTMLElement;
  /** Of the last heading before it. */
  readonly heading: number;
  nodes: Node[];
}

/** Draws prose into an element. */
export class ProseView {
  readonly #root: HTMLElement;
  #parts: Parts;
  #context: ArpContext;
  #builder: ProseBuilder;
  #links = noLinks();
  #given = "";
  /** What was given, as the lexer sees it, when it was drawn last. */
  #text = "";
  /** So much of the text is final and drawn. */
  #finished = 0;
  #isOpen = false;
  #tail = new Tail();
  #referring: Referring[] = [];
  #scheduled: (() => void) | null = null;
  #notBefore = 0;

  constructor(root: HTMLElement, context: ArpContext) {
    this.#root = root;
    this.#parts = new Parts(root);
    this.#context = context;
    this.#builder = new ProseBuilder(context);
  }

  /** Whether more is to be drawn in later frames. */
  get busy(): boolean {
    return this.#scheduled !== null;
  }

  /** Shows a text; `isOpen`: more of it is to come. */
  update(text: string, isOpen: boolean, context: ArpContext): void {
    const isOther = context !== this.#context && INPUTS.some((name) => context[name] !== this.#context[name]);
    this.#context = context;
    this.#given = text;
    this.#isOpen = isOpen;
    if (isOther) this.#begin();
    if (isOpen && !isOther && performance.now() < this.#notBefore) this.#later();
    else this.#work();
  }

  /** Stops what is scheduled. */
  stop(): void {
    this.#scheduled?.();
    this.#scheduled = null;
  }

  #begin(): void {
    this.stop();
    this.#builder = new ProseBuilder(this.#context);
    this.#links = noLinks();
    this.#finished = 0;
    this.#tail = new Tail();
    this.#referring = [];
    this.#parts = new Parts(this.#root);
  }

  #later(): void {
    this.#scheduled ??= soon(
      () => {
        this.#scheduled = null;
        this.#work();
      },
      this.#isOpen ? this.#notBefore - performance.now() : 0,
    );
  }

  /** Takes note of how long a frame took that began then: known when it has been painted. */
  #rest(start: number): void {
    setTimeout(() => {
      this.#notBefore = start + Math.min(LONGEST_PAUSE_MS, (performance.now() - start) * PAUSE_FACTOR);
    });
  }

  /** Takes what was given last. A text that was put together is made one here: not each time that it grows. */
  #take(): void {
    const text = this.#given;
    const source = text.includes("\r") ? text.replace(/\r\n?/g, "\n") : text;
    if (!source.startsWith(this.#text.slice(0, this.#finished))) this.#begin();
    this.#text = source;
  }

  #work(): void {
    this.stop();
    const start = performance.now();
    this.#take();
    while (this.#step()) if (performance.now() - start > BUDGET_MS) return this.#later();
    if (this.#isOpen) this.#rest(start);
  }

  /** Draws the next slice; returns whether there is one more. */
  #step(): boolean {
    const rest = this.#text.slice(this.#finished);
    if (this.#isOpen && this.#tail.grow(rest)) return false;
    if (rest.length > 2 * SLICE_CHARACTERS) {
      const cut = safeCut(rest, SLICE_CHARACTERS, MOST_CHARACTERS) || this.#blocksEnd(rest);
      if (cut < rest.length) {
        this.#finish(this.#lex(rest.slice(0, cut)), cut);
        return true;
      }
    }
    // What is still being written may look like a definition and be none.
    const mayDefine = this.#isOpen && rest.includes("]:");
    const tokens = mayDefine ? this.#read(rest) : this.#lex(rest);
    const last = this.#isOpen ? settled(tokens, rest.length < MOST_CHARACTERS) : lastBlock(tokens);
    const finished = tokens.slice(0, last);
    const source = sourceOf(finished);
    const isWhole = rest.startsWith(source);
    if (isWhole) this.#finish(mayDefine ? this.#lex(source) : finished, source.length);
    this.#drawTail(isWhole ? tokens.slice(last) : tokens);
    return false;
  }

  /** Where the blocks end that are whole, in a text whose lines do not say it; its length if there are none before its end. */
  #blocksEnd(rest: string): number {
    for (let size = 4 * SLICE_CHARACTERS; size < rest.length; size *= 2) {
      const newline = rest.indexOf("\n", size);
      if (newline < 0) break;
      const slice = rest.slice(0, newline + 1);
      if (!isBearable(slice)) return roughCut(rest, MOST_CHARACTERS);
      const tokens = this.#read(slice);
      const end = sourceOf(tokens.slice(0, settled(tokens, size < LONGEST_BLOCK)));
      if (end !== "" && slice.startsWith(end)) return end.length;
      if (size >= LONGEST_BLOCK && !LONG_BLOCKS.has(tokens.at(-1)?.type ?? "")) return roughCut(rest, LONGEST_BLOCK);
    }
    return rest.length;
  }

  /** Draws what is final, the next so many characters of the text. */
  #finish(tokens: readonly Token[], length: number): void {
    for (const token of tokens) {
      const { place } = this.#parts;
      const { heading } = this.#builder;
      const nodes = morph(place, this.#tail.take(), this.#builder.blocks([token]));
      if (/\[[^\]]+\](?!\()/.test(token.raw) && token.type !== "def")
        this.#referring.push({ source: token.raw, place, heading, nodes });
      this.#parts.next();
    }
    this.#finished += length;
  }

  /** Draws the last block, which may still grow. */
  #drawTail(tokens: readonly Token[]): void {
    const source = sourceOf(tokens);
    const whole = this.#isOpen && isBearable(source) ? complete(source) : source;
    const shown = whole === source ? tokens : this.#read(whole);
    const { heading } = this.#builder;
    this.#tail.draw(this.#parts.place, this.#builder, shown, source, this.#isOpen);
    this.#builder.heading = heading; // it will be drawn again
  }

  /** Reads what may still change. */
  #read(source: string): Token[] {
    return lex(source, Object.assign(noLinks(), this.#links), this.#context.dollarMath);
  }

  /** Reads what is final, with what it defines. */
  #lex(source: string): Token[] {
    const mayDefine = source.includes("]:");
    const known = mayDefine && Object.keys(this.#links).length;
    const tokens = lex(source, this.#links, this.#context.dollarMath);
    if (mayDefine && Object.keys(this.#links).length !== known) this.#resolve();
    return tokens;
  }

  /** Draws the blocks again that may refer to what is defined now. */
  #resolve(): void {
    const { heading } = this.#builder;
    for (const block of this.#referring) {
      this.#builder.heading = block.heading;
      const made = this.#builder.blocks(lex(block.source, this.#links, this.#context.dollarMath));
      block.nodes = morph(block.place, block.nodes, made, block.nodes.at(-1)?.nextSibling ?? null);
    }
    this.#builder.heading = heading;
  }
}

/** The place of the last block. */
function lastBlock(tokens: readonly Token[]): number {
  return Math.max(
    0,
    tokens.findLastIndex(({ type }) => type !== "space"),
  );
}

/** How many tokens stay as they are, whatever comes next. `withMath`: math that is not closed yet may take all that follows. */
function settled(tokens: readonly Token[], withMath: boolean): number {
  let last = lastBlock(tokens);
  // A line `#` ends the paragraph above, and `#1` belongs to it: until that is known, neither is final.
  if (last > 0 && tokens[last - 1]?.type !== "space" && isUndecided(tokens[last] as Token)) last -= 1;
  const math = withMath
    ? tokens.findIndex(({ type, raw }) => type === "paragraph" && /^ {0,3}(?:\$\$|\\\[)/m.test(raw))
    : -1;
  return math < 0 ? last : Math.min(last, math);
}

/** Whether a block, the last one, may become a part of what is above it by what comes next in its line. */
function isUndecided({ type, raw }: Token): boolean {
  if (raw.includes("\n")) return false;
  return type === "hr" || type === "code" || type === "math" || type === "html" || /^ {0,3}#+$/.test(raw);
}

function sourceOf(tokens: readonly Token[]): string {
  return tokens.map(({ raw }) => raw).join("");
}

/** Longer waits are for a timer; the others end with the next frame. */
const FRAME_MS = 16;

/** Calls soon, or after a while: at a frame, or without one where none comes; returns a function that stops it. */
function soon(call: () => void, ms: number): () => void {
  if (ms > FRAME_MS || document.hidden || typeof requestAnimationFrame === "undefined") {
    const timer = setTimeout(call, Math.max(0, ms));
    return () => clearTimeout(timer);
  }
  const frame = requestAnimationFrame(call);
  return () => cancelAnimationFrame(frame);
}
