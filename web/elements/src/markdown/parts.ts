/**
 * Where the blocks of prose stand.
 *
 * Theory of operation. Anyone who lays out a box goes through all that is in it, changed or not, so the
 * blocks of a long text are in parts, and parts in parts: what is written continues in the last of them, and
 * costs the same however much is before. Nodes never move, so that what is selected stays selected.
 */

/** So many are beside each other. The first so many blocks are by themselves: most texts are short. */
const MOST = 32;

export class Parts {
  readonly #root: HTMLElement;
  #outer: HTMLElement;
  #place: HTMLElement;

  constructor(root: HTMLElement) {
    this.#root = this.#outer = this.#place = root;
    root.replaceChildren();
  }

  /** Where the newest blocks stand. */
  get place(): HTMLElement {
    return this.#place;
  }

  /** The next block begins; what it belongs under is not parted from it. */
  next(): void {
    const { childElementCount, lastElementChild } = this.#place;
    if (childElementCount < MOST || /^H\d$/.test(lastElementChild?.nodeName ?? "")) return;
    const isFull = this.#outer === this.#root || this.#outer.childElementCount >= MOST;
    if (isFull) this.#outer = part(this.#root);
    this.#place = part(this.#outer);
  }
}

function part(parent: HTMLElement): HTMLElement {
  const made = document.createElement("div");
  made.className = "arp-part";
  parent.append(made);
  return made;
}
