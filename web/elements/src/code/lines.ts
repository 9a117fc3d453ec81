/**
 * Code as it is in its frame: a box for each line.
 *
 * Theory of operation. What comes at the end of a line grows its text; other lines are neither touched nor
 * laid out again, also when colours come. Very long code is in boxes of many lines and has no colours.
 */

import { linesOf, read, stretchNode } from "./highlight.js";

/** Code with more lines is in larger boxes. */
const MOST_LINES = 5_000;
const LINES_A_BOX = 100;

export class CodeLines {
  readonly #place: HTMLElement;
  #shown: string | null = null;
  #language = "";
  #isLong = false;
  /** The text of the last box, a line's end after it. */
  #last = document.createTextNode("");

  constructor(place: HTMLElement) {
    this.#place = place;
  }

  /** Shows a code, coloured for a language unless that is `""`. */
  show(code: string, language: string): void {
    const whole = code.replace(/\n$/, "");
    const [shown, before] = [this.#shown, this.#language];
    if (whole === shown && language === before) return;
    this.#shown = whole;
    this.#language = language;
    if (shown === null || before !== "" || !whole.startsWith(shown)) this.#begin(whole.split("\n"));
    else this.#goOn(whole.slice(shown.length).split("\n"), whole);
    if (language !== "" && !this.#isLong) this.#colour(whole, language);
  }

  #begin(lines: readonly string[]): void {
    this.#isLong = lines.length > MOST_LINES;
    this.#place.replaceChildren();
    this.#put(lines);
  }

  #goOn([end = "", ...lines]: readonly string[], whole: string): void {
    if (end !== "") this.#last.insertData(this.#last.length - 1, end);
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
