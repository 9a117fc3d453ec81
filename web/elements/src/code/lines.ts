/**
 * The lines of a piece of code, each in a box of its own.
 *
 * Theory of operation. Text that arrives at the end is appended to the text node of the last line. Other lines are
 * neither changed nor laid out again, and colours only change the lines that have any. Very long code is in boxes of
 * many lines and has no colours, because a box for each line would be slow.
 */

import { linesOf, read, stretchNode } from "./highlight.js";

/** Most lines that get a box each. */
const MOST_LINES = 5_000;
const LINES_A_BOX = 100;

/** The drawn lines of one piece of code. */
export class CodeLines {
  readonly #place: HTMLElement;
  #shown: string | null = null;
  #language = "";
  #isLong = false;
  /** Text node of the last box; it ends with a line break. */
  #last = document.createTextNode("");

  constructor(place: HTMLElement) {
    this.#place = place;
  }

  /** Show code; it gets the colours of a language unless that is `""`. */
  show(code: string, language: string): void {
    const whole = code.replace(/\n$/, "");
    const [shown, before] = [this.#shown, this.#language];
    if (whole === shown && language === before) return;
    this.#shown = whole;
    this.#language = language;
    // Coloured lines have no single text node to append to, so they are drawn again.
    if (shown === null || before !== "" || !whole.startsWith(shown)) this.#begin(whole.split("\n"));
    else this.#append(whole.slice(shown.length).split("\n"), whole);
    if (language !== "" && !this.#isLong) this.#colour(whole, language);
  }

  #begin(lines: readonly string[]): void {
    this.#isLong = lines.length > MOST_LINES;
    this.#place.replaceChildren();
    this.#put(lines);
  }

  /** Append to the last line, then add lines. */
  #append([end = "", ...lines]: readonly string[], whole: string): void {
    if (end !== "") this.#last.insertData(this.#last.length - 1, end);
    // The code has become too long for a box per line, so it is drawn again in larger boxes.
    if (!this.#isLong && this.#place.childElementCount + lines.length > MOST_LINES) this.#begin(whole.split("\n"));
    else this.#put(lines);
  }

  #put(lines: readonly string[]): void {
    const many = this.#isLong ? LINES_A_BOX : 1;
    for (let at = 0; at < lines.length; at += many) {
      const box = document.createElement("span");
      box.className = this.#isLong ? "arp-lines" : "arp-line";
      this.#last = document.createTextNode(`${lines.slice(at, at + many).join("\n")}\n`);
      box.append(this.#last);
      this.#place.append(box);
    }
  }

  #colour(whole: string, language: string): void {
    linesOf(read(whole, language)).forEach((line, at) => {
      if (line.some(({ kind }) => kind !== ""))
        this.#place.children[at]?.replaceChildren(...line.map(stretchNode), "\n");
    });
  }
}
