/**
 * The rows of a table. A short table has all rows in the document. A long table has only the visible ones, between two
 * spacers with the height of the rest; all its rows have the same height.
 *
 * Theory of operation. After a short scroll, the rows that are still visible keep their nodes, and `SPARE` rows are
 * drawn beyond both ends. After a long jump, the existing nodes get the content of the new rows, which is cheaper than
 * new nodes, and only visible rows are drawn: during fast scrolling, spare rows would be thrown away unseen. They are
 * drawn when scrolling has paused.
 */

import { missing, type Tail } from "./decimals.js";
import type { Row } from "./sort.js";

/** Most rows of a table that is drawn whole; of a longer table only the visible rows are drawn. */
export const WINDOWED = 200;
/** Number of rows drawn beyond each end of the visible ones. */
const SPARE = 8;
/** Time without scrolling after which scrolling counts as paused. */
const REST_MS = 100;
const [GUESSED_ROW_PX, GUESSED_BOX_PX] = [37, 500];
const MARKED = "arp-marked";

/** Options for drawing rows. */
export interface RowLook {
  /** Class name for the cells of each column. */
  readonly classes: readonly string[];
  /** Longest ending of the numbers in each column; `null` if the column has other values too. */
  readonly tails?: readonly (Tail | null)[];
  /** Number of decimals in each column; `null` shows each number as it is. */
  readonly decimals?: readonly (number | null)[];
  text(value: Row[number] | undefined, column: number): string;
  /** Return the full text of a cell that is shown rounded; `null` for any other cell. */
  whole?(value: Row[number] | undefined, column: number): string | null;
  isMarked(number: number): boolean;
  /** Draws or updates a cell before the others, such as a checkbox. */
  lead?(row: HTMLTableRowElement, number: number): void;
}

/** Draws rows into a `tbody` that scrolls in `box`. */
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

  /** Whether only visible rows are drawn. */
  get isWindowed(): boolean {
    return !this.#all && this.#order.length > WINDOWED;
  }

  /** Show rows in an order; unchanged rows that are already shown keep their nodes. */
  show(rows: readonly Row[], order: ArrayLike<number>, look: RowLook): void {
    // Functions are left out of the JSON; what they draw is compared by row and mark below.
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

  /** Return the node of a row by its index in `rows`, if it is in the document. */
  nodeOf(number: number): HTMLTableRowElement | undefined {
    return this.#made.get(number);
  }

  /** Draw all rows, for printing, or again only the visible ones. */
  showAll(all: boolean): void {
    this.#all = all;
    this.look();
  }

  /** Draw the rows that are visible now. */
  look(): void {
    clearTimeout(this.#resting);
    if (!this.isWindowed) return this.#draw(0, this.#order.length, false);
    const [first, end] = this.#window(0);
    let drawn = 0;
    for (let at = first; at < end; at += 1) drawn += Number(this.#made.has(this.#order[at] as number));
    // Fewer than half of the visible rows have a node: this was a long jump.
    const isFar = 2 * drawn < end - first;
    if (isFar) this.#resting = setTimeout(() => this.look(), REST_MS);
    this.#draw(...this.#window(isFar ? 0 : SPARE), isFar);
    // The first drawing guesses the height of a row. With the measured height, other rows are visible.
    if (this.#measure()) this.look();
  }

  /** Return the range of the visible rows, extended by `spare` rows at each end. */
  #window(spare: number): [first: number, end: number] {
    const { length } = this.#order;
    // A table that was never drawn is scrolled to its top. Reading that from the box would force another layout.
    const { scrollTop, clientHeight } = this.#isNew ? { scrollTop: 0, clientHeight: GUESSED_BOX_PX } : this.#box;
    const first = Math.max(0, Math.min(Math.floor(scrollTop / this.#height) - spare, length - 1));
    const even = first - (first % 2); // an odd first row would swap the colours of the stripes
    return [even, Math.min(length, even + Math.ceil((clientHeight || GUESSED_BOX_PX) / this.#height) + 2 * spare + 2)];
  }

  /** Draw a range of rows; with `isFar` the existing nodes are reused for the new rows. */
  #draw(first: number, end: number, isFar: boolean): void {
    this.#isNew = false;
    const wanted = Array.from({ length: end - first }, (_, at) => this.#order[first + at] as number);
    // Reused nodes need no new computation of styles. They are not reused while the user has selected text in the
    // table: the selection would suddenly contain the text of other rows.
    const free =
      isFar && !this.#isSelected() ? [...this.#made.values()].filter((node) => node.className !== MARKED) : [];
    const kept = free.length > 0 ? new Map<number, HTMLTableRowElement>() : this.#made;
    this.#made = new Map(wanted.map((number) => [number, kept.get(number) ?? this.#make(number, free.shift())]));
    const nodes = [...this.#made.values()];
    for (const [number, node] of this.#made) this.#look?.lead?.(node, number);
    nodes.forEach((node, at) => node.setAttribute("aria-rowindex", String(first + at + 2))); // counts from 1, and the header is row 1
    this.#above = this.#spacer(this.#above, first);
    this.#below = this.#spacer(this.#below, this.#order.length - end);
    this.#place([this.#above, ...nodes, this.#below].filter((node) => node !== null));
  }

  #isSelected(): boolean {
    const selection = getSelection();
    return selection !== null && !selection.isCollapsed && selection.containsNode(this.#body, true);
  }

  /** Put nodes in order; nodes that are already in the right place are not moved. */
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

  /** Return the node of a row; a free node is reused if there is one. */
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

  /** Measure the height of a drawn row. Returns whether it differs from the assumed one. */
  #measure(): boolean {
    const row = this.#body.querySelector<HTMLElement>("tr:not(.arp-spacer)");
    const height = row?.getBoundingClientRect().height ?? 0;
    if (height < 8 || Math.abs(height - this.#height) < 0.5) return false;
    this.#height = height;
    return true;
  }
}

/**
 * Set the text of a cell. A single text node is changed in place. If a browser extension such as a translator has put
 * elements around it, the whole content is replaced; otherwise its translation of the old text would stay.
 */
function say(cell: Element, words: string): void {
  const [text, more] = cell.childNodes;
  if (text instanceof Text && more === undefined) text.data = words;
  else cell.textContent = words;
}
