/**
 * The facts that the timeline holds: those that a filter takes, of one stretch of the log.
 *
 * Theory of operation. A window covers the facts after `low` up to `high`: all in between has been
 * looked at, what the filter takes is in `facts`. It grows at both ends and lets go at the other
 * what is over `MOST`, so a session of any length costs the same. `live` means that `high` is the
 * newest fact that we know of: then new facts are added as they come.
 */

import { isProblem, JOINED, PROBLEMS } from "./describe.js";

/** Facts that are kept. */
export const MOST = 3000;

/** What is looked for. Pure: `takes(fact)`; `chosen` is what the server can choose by. */
export class Filter {
  constructor({ types = [], turn = null, text = "", problems = false } = {}) {
    this.types = types;
    this.turn = turn;
    this.text = text.toLowerCase();
    this.problems = problems;
  }

  get isEmpty() {
    return !this.types.length && this.turn === null && !this.text && !this.problems;
  }

  /** Types and families of which the server need give no others; none means all. */
  get chosen() {
    return this.types.length || !this.problems ? this.types : PROBLEMS;
  }

  takes(fact) {
    if (this.turn !== null && fact.turnId !== this.turn) return false;
    if (this.types.length && !this.types.some((one) => isOf(fact.type, one))) return false;
    if (this.problems && !isProblem(fact)) return false;
    return !this.text || JSON.stringify(fact).toLowerCase().includes(this.text);
  }
}

function isOf(type, wanted) {
  return type === wanted || type.startsWith(`${wanted}.`);
}

/** Types and families that a text names, separated by spaces or commas. */
export function typesIn(text) {
  const names = text.toLowerCase().split(/[\s,]+/);
  return [...new Set(names.map((name) => name.replace(/\.?\*?$/, "")).filter(Boolean))];
}

export class FactWindow {
  facts = [];
  low = 0;
  high = 0;
  live = true;

  constructor(filter = new Filter()) {
    this.filter = filter;
  }

  /** Begins anew between two facts: behind `place`, with nothing looked at. */
  reset(place, live) {
    this.facts = [];
    this.low = this.high = place;
    this.live = live;
  }

  get atStart() {
    return this.low === 0;
  }

  /** Takes what lies after `low`, up to where the window begins. */
  addOlder(facts, low) {
    const first = this.facts[0]?.sequence ?? this.high + 1;
    const older = facts.filter((fact) => fact.sequence < first && this.filter.takes(fact));
    this.facts = [...older, ...this.facts];
    this.low = low;
    if (this.facts.length <= MOST) return older.length;
    this.facts.length = MOST;
    this.high = this.facts[MOST - 1].sequence;
    this.live = false;
    return older.length;
  }

  /** Takes what lies behind `high`, up to `high`'s new value. */
  addNewer(facts, high) {
    const newer = facts.filter((fact) => fact.sequence > this.high && this.filter.takes(fact));
    this.facts.push(...newer);
    this.high = Math.max(high, this.high);
    const over = this.facts.length - MOST;
    if (over > 0) {
      this.low = this.facts[over - 1].sequence;
      this.facts.splice(0, over);
    }
    return newer.length;
  }

  /** Takes a fact that has just happened; only a live window wants it. */
  push(fact) {
    if (this.live && fact.sequence > this.high) this.addNewer([fact], fact.sequence);
  }
}

/**
 * Rows of a timeline: a fact each, neighbouring pieces of one turn's text together.
 * @returns {{first, last, facts, seq}[]}; `seq` is the first fact's place.
 */
export function rowsOf(facts, joining) {
  const rows = [];
  let open = null;
  for (const fact of facts) {
    const joins =
      joining &&
      open !== null &&
      JOINED.has(fact.type) &&
      open.last.type === fact.type &&
      open.last.turnId === fact.turnId &&
      open.last.sequence + 1 === fact.sequence;
    if (joins) {
      open.facts.push(fact);
      open.last = fact;
    } else {
      open = { first: fact, last: fact, facts: [fact], seq: fact.sequence };
      rows.push(open);
    }
  }
  return rows;
}

/** The row that holds a fact; -1 if none does. */
export function rowWith(rows, seq) {
  let low = 0;
  let high = rows.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    if (rows[middle].last.sequence < seq) low = middle + 1;
    else if (rows[middle].first.sequence > seq) high = middle - 1;
    else return middle;
  }
  return -1;
}

/** Families of facts with how many there are, most first. */
export function familiesOf(byFamily) {
  return Object.entries(byFamily ?? {}).sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
}
