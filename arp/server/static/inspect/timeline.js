/**
 * The list of facts: only the rows that can be seen are in the document.
 *
 * Theory of operation. Rows have one height, so the row at a place is known without measuring. The
 * list is a listbox: the focus stays on it, the chosen row is its active descendant.
 */

import { arrange, el, setText } from "./dom.js";
import { family, line, tone } from "./describe.js";
import { between, clock, span } from "./words.js";
import { rowWith } from "./fact_window.js";

const HEIGHT = 30;
const BEYOND = 8;
/** So near to an end that more is wanted. */
const NEAR_PX = 300;

export class Timeline {
  rows = [];
  /** The place of the chosen fact; null if none is. */
  chosen = null;
  /** Whether the list stays at its end while facts come. */
  following = true;
  #drawn = new Map();

  /**
   * @param on choose(row), older(), newer(): what the list asks for.
   */
  constructor(list, on) {
    this.list = list;
    this.on = on;
    this.track = el("div", { class: "track", role: "presentation" });
    list.append(this.track);
    list.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    list.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(() => this.#resized()).observe(list);
  }

  /** Shows other rows; what stood at the top stays there unless the end is followed. */
  set(rows) {
    const { list } = this;
    const anchor = this.following ? null : this.#anchor();
    this.rows = rows;
    this.track.style.height = `${rows.length * HEIGHT}px`;
    if (this.following) list.scrollTop = rows.length * HEIGHT;
    else if (anchor) this.#keep(anchor);
    this.draw();
  }

  /** Shows the fact of that place, in the middle; false if it is not among the rows. */
  reveal(seq) {
    const index = rowWith(this.rows, seq);
    if (index < 0) return false;
    const { list } = this;
    const top = index * HEIGHT;
    const isSeen = top >= list.scrollTop && top + HEIGHT <= list.scrollTop + list.clientHeight;
    this.following = false;
    if (!isSeen) list.scrollTop = top - list.clientHeight / 2;
    this.draw();
    return true;
  }

  /** Goes to the newest fact and stays there. */
  follow() {
    this.following = true;
    this.list.scrollTop = this.rows.length * HEIGHT;
    this.draw();
  }

  /** The end stays in view, and so does the chosen row. */
  #resized() {
    if (this.following) this.follow();
    else if (this.chosen === null || !this.reveal(this.chosen)) this.draw();
  }

  draw() {
    const { list, rows } = this;
    const first = Math.max(0, Math.floor(list.scrollTop / HEIGHT) - BEYOND);
    const last = Math.min(
      rows.length,
      Math.ceil((list.scrollTop + list.clientHeight) / HEIGHT) + BEYOND,
    );
    const nodes = [];
    const drawn = new Map();
    for (let index = first; index < last; index += 1) {
      const row = rows[index];
      const node = this.#drawn.get(row.seq) ?? this.#build(row);
      this.#fill(node, row, index);
      drawn.set(row.seq, node);
      nodes.push(node);
    }
    this.#drawn = drawn;
    arrange(this.track, nodes);
    const active = this.chosen === null ? -1 : rowWith(rows, this.chosen);
    const id = active >= first && active < last ? idOf(rows[active]) : "";
    if (id) list.setAttribute("aria-activedescendant", id);
    else list.removeAttribute("aria-activedescendant");
  }

  #build(row) {
    const { first } = row;
    const cells = ["seq", "time", "gap", "type", "says", "turn"].map((name) =>
      el("span", { class: name }),
    );
    const node = el(
      "div",
      { class: "fact", role: "option", id: idOf(row), "data-seq": row.seq },
      ...cells,
    );
    node.addEventListener("click", () => this.#choose(rowWith(this.rows, row.seq)));
    const [seq, time, , type, , turn] = cells;
    setText(seq, String(first.sequence));
    setText(time, clock(first.timestamp));
    time.title = first.timestamp;
    type.append(el("b", {}, family(first.type)), first.type.slice(family(first.type).length));
    setText(turn, first.turnId ?? "");
    return node;
  }

  #fill(node, row, index) {
    const count = row.facts.length;
    const mark = `${tone(row.first)} ${index % 2 ? "odd" : ""}`.trim();
    node.className = `fact ${mark}`;
    node.style.transform = `translateY(${index * HEIGHT}px)`;
    const isChosen =
      this.chosen !== null && row.seq <= this.chosen && this.chosen <= row.last.sequence;
    node.setAttribute("aria-selected", String(isChosen));
    node.setAttribute("aria-setsize", String(this.rows.length));
    node.setAttribute("aria-posinset", String(index + 1));
    const before = this.rows[index - 1]?.last;
    const ms = before ? between(before.timestamp, row.first.timestamp) : NaN;
    const [, , gap, , says] = node.children;
    setText(gap, ms >= 1 ? `+${span(ms)}` : "");
    gap.classList.toggle("long", ms >= 5000);
    if (node.dataset.count === String(count)) return;
    node.dataset.count = String(count);
    setText(says, count === 1 ? line(row.first) : joined(row));
  }

  #anchor() {
    const index = Math.floor(this.list.scrollTop / HEIGHT);
    const row = this.rows[index];
    return row ? { seq: row.seq, offset: this.list.scrollTop - index * HEIGHT } : null;
  }

  #keep({ seq, offset }) {
    const index = rowWith(this.rows, seq);
    if (index >= 0) this.list.scrollTop = index * HEIGHT + offset;
  }

  #scrolled() {
    const { list } = this;
    const below = list.scrollHeight - list.scrollTop - list.clientHeight;
    this.following = below < HEIGHT / 2;
    this.draw();
    if (list.scrollTop < NEAR_PX) this.on.older();
    if (below < NEAR_PX) this.on.newer();
  }

  #key(event) {
    const page = Math.max(1, Math.floor(this.list.clientHeight / HEIGHT) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page };
    const ends = { Home: 0, End: this.rows.length - 1 };
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (!(event.key in steps) && !(event.key in ends)) return;
    event.preventDefault();
    const now = this.chosen === null ? -1 : rowWith(this.rows, this.chosen);
    const from = now < 0 ? this.rows.length : now;
    const to = ends[event.key] ?? from + steps[event.key];
    this.#choose(Math.max(0, Math.min(this.rows.length - 1, to)));
  }

  #choose(index) {
    const row = this.rows[index];
    if (!row) return;
    this.chosen = row.seq;
    this.reveal(row.seq);
    if (index === this.rows.length - 1) this.on.newer();
    if (index === 0) this.on.older();
    this.on.choose(row);
  }
}

function idOf(row) {
  return `fact-${row.seq}`;
}

function joined(row) {
  const text = row.facts.map((fact) => fact.payload?.text ?? "").join("");
  return `×${row.facts.length} ${text.replace(/\s+/g, " ").slice(0, 300)}`;
}
