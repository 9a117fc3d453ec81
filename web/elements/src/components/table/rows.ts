/**
 * The rows of a table. Few rows all are in the page; of many only those in sight, between two
 * spacers, all of one height.
 *
 * Theory of operation. Near by, rows that stay in sight stay as they are, and some more are ready at both
 * ends. Far away the rows that are there show others, and only as many as are in sight: while somebody
 * scrolls fast those beyond go unseen. They come when scrolling rests.
 */

import { missing, type Tail } from "./decimals.js";
import type { Row } from "./sort.js";

/** From so many rows on, only those in sight are drawn. */
export const WINDOWED = 200;
/** Rows drawn beyond both ends of what is in sight. */
const SPARE = 8;
/** Scrolling rests when nothing has moved for so long. */
const REST_MS = 100;
const [GUESSED_ROW_PX, GUESSED_BOX_PX] = [37, 500];
const MARKED = "arp-marked";

/** How cells are drawn. */
export interface RowLook {
  /** The class of each column's cells. */
  readonly classes: readonly string[];
  /** How the numbers of each column end; `null` where there are others than numbers. */
  readonly tails?: readonly (Tail | null)[];
  /** How many decimals the numbers of each column get. */
  readonly decimals?: readonly (number | null)[];
  text(value: Row[number] | undefined, column: number): string;
  /** All of a cell that is shown rounded; `null` of any other. */
  whole?(value: Row[number] | undefined, column: number): string | null;
  isMarked(number: number): boolean;
  /** Draws the cell that is before the others, and draws it again in a row that is there. */
  lead?(row: HTMLTableRowElement, number: number): void;
}

/** Draws rows into a `tbody` whose scrolling box is `box`. */
export class TableRows {
  readonly #body: HTMLTableSectionElement;
  readonly #box: HTMLElement;
  #rows: readonly Row[] = [];
  #order: ArrayLike<number> = [];
  #look: RowLook | null = null;
  #made = new Map<number, HTMLTableRowElement>();
  #above: HTMLTableRowElement | null = null;
  #below: HTMLTableRowElement | null = null;
  #height = GUESSED_ROW_PX;
  #all = false;
  #isNew = true;
  #resting: ReturnType<typeof setTimeout> | undefined;

  constructor(body: HTMLTableSectionElement, box: HTMLElement) {
    this.#body = body;
    this.#box = box;
    box.addEventListener("scroll", () => this.look(), { passive: true });
  }

  /** Whether only rows in sight are drawn. */
  get isWindowed(): boolean {
    return !this.#all && this.#order.length > WINDOWED;
  }

  /** Shows rows in an order; those that are shown already and did not change keep their nodes. */
  show(rows: readonly Row[], order: ArrayLike<number>, look: RowLook): void {
    const isSameLook = JSON.stringify(this.#look) === JSON.stringify(look) && !this.#look?.lead === !look.lead;
    for (const [number, node] of this.#made) {
      if (
        isSameLook &&
        rows[number] === this.#rows[number] &&
        node.classList.contains(MARKED) === look.isMarked(number)
      )
        continue;
      node.remove();
      this.#made.delete(number);
    }
    this.#rows = rows;
    this.#order = order;
    this.#look = look;
    this.look();
  }

  /** The row of this number, if it is in the page. */
  nodeOf(number: number): HTMLTableRowElement | undefined {
    return this.#made.get(number);
  }

  /** All rows, for paper; or again only those in sight. */
  showAll(all: boolean): void {
    this.#all = all;
    this.look();
  }

  /** Draws what is in sight now. */
  look(): void {
    clearTimeout(this.#resting);
    if (!this.isWindowed) return this.#draw(0, this.#order.length, false);
    const [first, end] = this.#window(0);
    let drawn = 0;
    for (let at = first; at < end; at += 1) drawn += Number(this.#made.has(this.#order[at] as number));
    const isFar = 2 * drawn < end - first;
    if (isFar) this.#resting = setTimeout(() => this.look(), REST_MS);
    this.#draw(...this.#window(isFar ? 0 : SPARE), isFar);
    if (this.#measure()) this.look();
  }

  /** The rows in sight, and so many beyond. */
  #window(spare: number): [first: number, end: number] {
    const { length } = this.#order;
    // What was never drawn is at its top: to ask would have the page laid out once more.
    const { scrollTop, clientHeight } = this.#isNew ? { scrollTop: 0, clientHeight: GUESSED_BOX_PX } : this.#box;
    const first = Math.max(0, Math.min(Math.floor(scrollTop / this.#height) - spare, length - 1));
    const even = first - (first % 2); // stripes stay where they are
    return [even, Math.min(length, even + Math.ceil((clientHeight || GUESSED_BOX_PX) / this.#height) + 2 * spare + 2)];
  }

  /** Draws these rows; `anew`: they are others than those that are there. */
  #draw(first: number, end: number, anew: boolean): void {
    this.#isNew = false;
    const wanted = Array.from({ length: end - first }, (_, at) => this.#order[first + at] as number);
    // Rows then keep their places and show others: new ones would want their styles again. What is selected stays what it was.
    const free =
      anew && !this.#isSelected() ? [...this.#made.values()].filter((node) => node.className !== MARKED) : [];
    const kept = free.length > 0 ? new Map<number, HTMLTableRowElement>() : this.#made;
    this.#made = new Map(wanted.map((number) => [number, kept.get(number) ?? this.#make(number, free.shift())]));
    const nodes = [...this.#made.values()];
    for (const [number, node] of this.#made) this.#look?.lead?.(node, number);
    nodes.forEach((node, at) => node.setAttribute("aria-rowindex", String(first + at + 2))); // the head is the first
    this.#above = this.#spacer(this.#above, first);
    this.#below = this.#spacer(this.#below, this.#order.length - end);
    this.#place([this.#above, ...nodes, this.#below].filter((node) => node !== null));
  }

  #isSelected(): boolean {
    const selection = getSelection();
    return selection !== null && !selection.isCollapsed && selection.containsNode(this.#body, true);
  }

  /** Puts nodes in order, moving only those that are elsewhere. */
  #place(nodes: readonly HTMLTableRowElement[]): void {
    const placed = new Set<Element>(nodes);
    for (const node of [...this.#body.children]) if (!placed.has(node)) node.remove();
    let next = this.#body.firstElementChild;
    for (const node of nodes) {
      if (node === next) next = node.nextElementSibling;
      else this.#body.insertBefore(node, next);
    }
  }

  #spacer(node: HTMLTableRowElement | null, rows: number): HTMLTableRowElement | null {
    if (!this.isWindowed || rows <= 0) return null;
    const made = node ?? document.createElement("tr");
    made.className = "arp-spacer";
    made.setAttribute("aria-hidden", "true");
    made.style.height = `${rows * this.#height}px`;
    return made;
  }

  /** A row, made of a free one if there is one. */
  #make(number: number, free?: HTMLTableRowElement): HTMLTableRowElement {
    const look = this.#look as RowLook;
    const row = this.#rows[number] ?? [];
    const isMarked = look.isMarked(number);
    const old = isMarked ? undefined : free;
    const node = old ?? document.createElement("tr");
    if (isMarked) node.className = MARKED;
    if (!old) look.lead?.(node, number);
    const before = look.lead ? 1 : 0;
    for (const [column, name] of look.classes.entries()) {
      const shown = look.text(row[column], column);
      const cell = node.children[column + before] ?? node.appendChild(document.createElement("td"));
      if (!old) cell.className = name;
      const tail = look.tails?.[column];
      const lack = tail ? missing(shown, tail) : "";
      if (lack !== "") cell.setAttribute("data-lack", lack);
      else if (old) cell.removeAttribute("data-lack");
      const whole = look.whole?.(row[column], column) ?? null;
      if (whole !== null) cell.setAttribute("title", whole);
      else if (old) cell.removeAttribute("title");
      if (isMarked && column === 0)
        cell.append(Object.assign(document.createElement("strong"), { textContent: shown }));
      else say(cell, shown);
    }
    return node;
  }

  /** Takes the height of a row as it is drawn; returns whether it is another one than thought. */
  #measure(): boolean {
    const row = this.#body.querySelector<HTMLElement>("tr:not(.arp-spacer)");
    const height = row?.getBoundingClientRect().height ?? 0;
    if (height < 8 || Math.abs(height - this.#height) < 0.5) return false;
    this.#height = height;
    return true;
  }
}

/** Writes a cell. Its text is changed in place, unless somebody else put something around it: a translator, say. */
function say(cell: Element, words: string): void {
  const [text, more] = cell.childNodes;
  if (text instanceof Text && more === undefined) text.data = words;
  else cell.textContent = words;
}
