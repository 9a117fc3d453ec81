/**
 * The containers of the blocks of prose.
 *
 * Theory of operation. To lay out a box, a browser visits all its children, changed or not. So the blocks of a long
 * text are grouped in parts, and the parts in larger parts. New blocks go to the last part, and the cost of a layout
 * does not depend on the length of the text before. Nodes never move, so that a selection is not lost.
 */

/** Most children of one part. As most texts are short, this number of blocks is placed directly in the root first. */
const MOST = 32;

/** The parts of one text. */
export class Parts {
  readonly #root: HTMLElement;
  #outer: HTMLElement;
  #place: HTMLElement;

  constructor(root: HTMLElement) {
    this.#root = this.#outer = this.#place = root;
    root.replaceChildren();
  }

  /** Container of the newest blocks. */
  get place(): HTMLElement {
    return this.#place;
  }

  /** Prepare for the next block. It goes to a new part if the current one is full, but not directly after a heading. */
  next(): void {
    const { childElementCount, lastElementChild } = this.#place;
    if (childElementCount < MOST || /^H\d$/.test(lastElementChild?.nodeName ?? "")) return;
    const isFull = this.#outer === this.#root || this.#outer.childElementCount >= MOST;
    if (isFull) this.#outer = part(this.#root);
    this.#place = part(this.#outer);
  }
}

/** Append a part to a container, and return it. */
function part(parent: HTMLElement): HTMLElement {
  const made = document.createElement("div");
  made.className = "arp-part";
  parent.append(made);
  return made;
}
