/**
 * Prose that may grow at its end.
 *
 * Theory of operation. The text consists of a final prefix and the rest. Blocks of the prefix are drawn once and not
 * touched again. The rest, usually the last block, is read again when more text arrives (`tail.ts`). Blocks are grouped
 * in parts, so that old ones cost nothing in a layout (`parts.ts`). Long texts are drawn in slices of a few
 * milliseconds per frame.
 *
 * Link definitions (`[name]: url`) are the exception: one may come after the blocks that refer to it. So final blocks
 * with brackets are kept with their source, and are drawn again when a new definition is final.
 */

import type { Token } from "marked";
import type { ArpContext } from "../base/context.js";
import { ProseBuilder } from "./builder.js";
import { complete } from "./complete.js";
import { isBearable, lex, noLinks, roughCut, safeCut } from "./lexer.js";
import { morph } from "./morph.js";
import { Parts } from "./parts.js";
import { Tail } from "./tail.js";

/** Least and most characters that are read at once. */
const SLICE_CHARACTERS = 1_000;
const MOST_CHARACTERS = 32_000;
/** Length at which a paragraph, list or quote is cut: the time to read it grows faster than its length. */
const LONGEST_BLOCK = 8 * MOST_CHARACTERS;
/** Types of blocks that are never cut, because the time to read them grows only with their length. */
const LONG_BLOCKS = new Set(["code", "table", "html", "math"]);
/** Time for prose in one frame. */
const BUDGET_MS = 4;
/**
 * Length of the pause after a drawing, relative to its duration including layout and painting. With 5, a text that is
 * being written takes at most a sixth of the time, and the page stays responsive.
 */
const PAUSE_FACTOR = 5;
const LONGEST_PAUSE_MS = 100;

/** Fields of the context that the drawing depends on. */
const INPUTS = ["t", "dollarMath", "citations"] as const;

/** A final block that may refer to a later link definition. */
interface Referring {
  readonly source: string;
  readonly place: HTMLElement;
  /** Level of the last heading before it. */
  readonly heading: number;
  nodes: Node[];
}

/** Draws a text into an element. */
export class ProseView {
  readonly #root: HTMLElement;
  #parts: Parts;
  #context: ArpContext;
  #builder: ProseBuilder;
  #links = noLinks();
  #given = "";
  /** Text of the last drawing, with line breaks as the lexer expects them. */
  #text = "";
  /** Length of the final, drawn prefix. */
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

  /** Whether more will be drawn in later frames. */
  get busy(): boolean {
    return this.#scheduled !== null;
  }

  /** Show a text; `isOpen` means that more text is coming. */
  update(text: string, isOpen: boolean, context: ArpContext): void {
    const isOther = context !== this.#context && INPUTS.some((name) => context[name] !== this.#context[name]);
    this.#context = context;
    this.#given = text;
    this.#isOpen = isOpen;
    // Final blocks were drawn with the old values, such as the language, so everything is drawn again.
    if (isOther) this.#begin();
    if (isOpen && !isOther && performance.now() < this.#notBefore) this.#later();
    else this.#work();
  }

  /** Cancel the scheduled drawing. */
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

  /** Compute the pause after a drawing that began at `start`. The timer runs after painting, so that counts too. */
  #rest(start: number): void {
    setTimeout(() => {
      this.#notBefore = start + Math.min(LONGEST_PAUSE_MS, (performance.now() - start) * PAUSE_FACTOR);
    });
  }

  /**
   * Adopt the newest text. Start over if it does not begin with the final prefix, which is already drawn. This runs
   * once per drawing and not in `update`: reading a string that was joined from pieces copies all of it, which would be
   * slow for each delta.
   */
  #adopt(): void {
    const text = this.#given;
    const source = text.includes("\r") ? text.replace(/\r\n?/g, "\n") : text;
    if (!source.startsWith(this.#text.slice(0, this.#finished))) this.#begin();
    this.#text = source;
  }

  #work(): void {
    this.stop();
    const start = performance.now();
    this.#adopt();
    while (this.#step()) if (performance.now() - start > BUDGET_MS) return this.#later();
    if (this.#isOpen) this.#rest(start);
  }

  /** Draw the next slice. Returns whether there is another one. */
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
    // An unfinished line may look like a definition (`[a]: b`). Recording it would turn other text into links, so
    // definitions are recorded only when their block is final.
    const mayDefine = this.#isOpen && rest.includes("]:");
    const tokens = mayDefine ? this.#read(rest) : this.#lex(rest);
    const last = this.#isOpen ? settled(tokens, rest.length < MOST_CHARACTERS) : lastBlock(tokens);
    const finished = tokens.slice(0, last);
    const source = sourceOf(finished);
    const isWhole = rest.startsWith(source);
    // If the sources of the tokens do not add up to the text, their length does not say where they end in it. Cutting
    // there could lose or repeat characters, so nothing is final yet.
    if (isWhole) this.#finish(mayDefine ? this.#lex(source) : finished, source.length);
    this.#drawTail(isWhole ? tokens.slice(last) : tokens);
    return false;
  }

  /**
   * Return the end of the complete blocks at the start of a text that `safeCut` cannot cut; its length if no block ends
   * before the end of the text. The lexer reads slices of doubling size, so the whole costs at most twice the last one.
   */
  #blocksEnd(rest: string): number {
    for (let size = 4 * SLICE_CHARACTERS; size < rest.length; size *= 2) {
      const newline = rest.indexOf("\n", size);
      if (newline < 0) break; // no complete line beyond this size
      const slice = rest.slice(0, newline + 1);
      // The lexer must not see this slice. It is cut at a line, even if that changes the meaning.
      if (!isBearable(slice)) return roughCut(rest, MOST_CHARACTERS);
      const tokens = this.#read(slice);
      const end = sourceOf(tokens.slice(0, settled(tokens, size < LONGEST_BLOCK)));
      if (end !== "" && slice.startsWith(end)) return end.length;
      if (size >= LONGEST_BLOCK && !LONG_BLOCKS.has(tokens.at(-1)?.type ?? "")) return roughCut(rest, LONGEST_BLOCK);
    }
    return rest.length;
  }

  /** Draw the next final blocks. They end `length` characters after the previous prefix. */
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

  /** Draw the last block, which may still grow. */
  #drawTail(tokens: readonly Token[]): void {
    const source = sourceOf(tokens);
    const whole = this.#isOpen && isBearable(source) ? complete(source) : source;
    const shown = whole === source ? tokens : this.#read(whole);
    const { heading } = this.#builder;
    this.#tail.draw(this.#parts.place, this.#builder, shown, source, this.#isOpen);
    this.#builder.heading = heading; // the block will be drawn again and must not count its headings twice
  }

  /** Return the tokens of text that may still change; its definitions are not recorded. */
  #read(source: string): Token[] {
    return lex(source, Object.assign(noLinks(), this.#links), this.#context.dollarMath);
  }

  /** Return the tokens of final text, and record its definitions. */
  #lex(source: string): Token[] {
    const mayDefine = source.includes("]:");
    const known = mayDefine && Object.keys(this.#links).length;
    const tokens = lex(source, this.#links, this.#context.dollarMath);
    if (mayDefine && Object.keys(this.#links).length !== known) this.#resolve();
    return tokens;
  }

  /** Draw the blocks again that may refer to a new definition. */
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

/** Return the index of the last token that is a block. */
function lastBlock(tokens: readonly Token[]): number {
  return Math.max(
    0,
    tokens.findLastIndex(({ type }) => type !== "space"),
  );
}

/**
 * Return the number of leading tokens that no later text can change.
 *
 * @param withMath Whether an unclosed display formula counts: it may still extend over all tokens after it.
 */
function settled(tokens: readonly Token[], withMath: boolean): number {
  let last = lastBlock(tokens);
  // `#` alone ends the paragraph above it, but `#1` belongs to it. Until the line says which, neither is final.
  if (last > 0 && tokens[last - 1]?.type !== "space" && isUndecided(tokens[last] as Token)) last -= 1;
  const math = withMath
    ? tokens.findIndex(({ type, raw }) => type === "paragraph" && /^ {0,3}(?:\$\$|\\\[)/m.test(raw))
    : -1;
  return math < 0 ? last : Math.min(last, math);
}

/** Return whether the last block may become a part of the block above it when its line continues. */
function isUndecided({ type, raw }: Token): boolean {
  if (raw.includes("\n")) return false;
  return type === "hr" || type === "code" || type === "math" || type === "html" || /^ {0,3}#+$/.test(raw);
}

/** Return the source of tokens. */
function sourceOf(tokens: readonly Token[]): string {
  return tokens.map(({ raw }) => raw).join("");
}

/** Longest wait that ends with the next frame; longer ones use a timer. */
const FRAME_MS = 16;

/**
 * Call a function after a wait, in an animation frame if possible. A hidden page gets no frames, so a timer is used
 * there. Returns a function that cancels the call.
 */
function soon(call: () => void, ms: number): () => void {
  if (ms > FRAME_MS || document.hidden || typeof requestAnimationFrame === "undefined") {
    const timer = setTimeout(call, Math.max(0, ms));
    return () => clearTimeout(timer);
  }
  const frame = requestAnimationFrame(call);
  return () => cancelAnimationFrame(frame);
}
