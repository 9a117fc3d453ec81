/**
 * A table that can be sorted, filtered and read by columns. Rows beyond the first two hundred are
 * built on demand, so that a large table does not hold the page up.
 */

import { arrange, asList, asText, el, setText, uniqueId } from "./dom.js";
import { linked } from "./prose.js";

const STEP = 200;
const NUMERIC = /^[-+−]?[$€£¥]?\d[\d,. '’]*(?:e[-+]?\d+)?\s?(?:%|[kKMGTB]|[$€£¥])?$/;
const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });

/** The view of a `table`. */
export class TableView {
  node = el("section", { class: "card table" });
  #tab = 0;
  #sort = null;
  #filter = "";
  #limit = STEP;
  #title = el("h3", { id: uniqueId("table"), dir: "auto" });
  #tabs = el("div", { "class": "tabs", "role": "tablist", "aria-labelledby": this.#title.id });
  #search = el("input", {
    "type": "search",
    "placeholder": "Filter rows",
    "aria-label": "Filter rows",
    "oninput": () => this.#reset({ filter: this.#search.value }),
  });
  #found = el("output", { class: "hint" });
  #tools = el("div", { class: "tools" }, this.#search, this.#found);
  #scroll = el("div", {
    "class": "scroll",
    "tabindex": "0",
    "role": "region",
    "aria-labelledby": this.#title.id,
  });
  #more = el("button", {
    type: "button",
    class: "soft more",
    onclick: () => this.#reset({ limit: this.#limit + STEP * 5 }),
  });

  constructor() {
    this.node.append(this.#title, this.#tabs, this.#tools, this.#scroll, this.#more);
  }

  update({ props }) {
    this.props = props;
    this.sheets = sheetsOf(props);
    this.#tab = Math.min(this.#tab, this.sheets.length - 1);
    const title = asText(props.title);
    setText(this.#title, title || "Table");
    this.#title.className = title ? "" : "unseen";
    this.#tools.hidden = !props.searchable;
    this.#drawTabs();
    this.#draw();
  }

  #reset({ filter = this.#filter, limit = STEP, sort = this.#sort }) {
    this.#filter = filter;
    this.#limit = limit;
    this.#sort = sort;
    this.#draw();
  }

  #drawTabs() {
    this.#tabs.hidden = this.sheets.length < 2;
    const buttons = this.sheets.map(({ name }, index) =>
      el(
        "button",
        {
          "type": "button",
          "role": "tab",
          "class": "tab",
          "aria-selected": String(index === this.#tab),
          "tabindex": index === this.#tab ? "0" : "-1",
          "onclick": () => this.#openTab(index),
          "onkeydown": (event) => this.#tabKey(event),
        },
        name,
      ),
    );
    const focused = this.#tabs.contains(document.activeElement);
    arrange(this.#tabs, buttons);
    if (focused) buttons[this.#tab].focus();
  }

  #openTab(index) {
    this.#tab = index;
    this.#sort = null;
    this.#limit = STEP;
    this.#drawTabs();
    this.#draw();
  }

  #tabKey(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    this.#openTab((this.#tab + step + this.sheets.length) % this.sheets.length);
  }

  #draw() {
    const sheet = this.sheets[this.#tab];
    const rows = this.#arranged(sheet);
    const shown = rows.slice(0, this.#limit);
    setText(this.#found, this.#filter ? `${rows.length} of ${sheet.rows.length} rows` : "");
    const body = el(
      "tbody",
      {},
      shown.map((index) => bodyRow(sheet, index)),
    );
    if (!rows.length)
      body.append(el("tr", {}, el("td", { class: "hint", colspan: sheet.width }, "No rows")));
    this.#keepFocus(
      el(
        "table",
        { "aria-labelledby": this.#title.id, "aria-rowcount": rows.length + 1 },
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            sheet.headers.map((text, column) => this.#header(sheet, text, column)),
          ),
        ),
        body,
      ),
    );
    this.#more.hidden = rows.length <= this.#limit;
    setText(this.#more, `Show more (${rows.length - shown.length} rows left)`);
  }

  /** Replaces the table; a focused sort button keeps the focus, the place scrolled to stays. */
  #keepFocus(table) {
    const { scrollLeft, scrollTop } = this.#scroll;
    const focused = [...this.#scroll.querySelectorAll("button")].indexOf(document.activeElement);
    arrange(this.#scroll, [table]);
    if (focused >= 0) this.#scroll.querySelectorAll("button")[focused]?.focus();
    Object.assign(this.#scroll, { scrollLeft, scrollTop });
  }

  #arranged(sheet) {
    const words = this.#filter.toLowerCase();
    let order = sheet.rows.map((_, index) => index);
    if (words)
      order = order.filter((index) =>
        asList(sheet.rows[index]).some((cell) => cellText(cell).toLowerCase().includes(words)),
      );
    if (this.#sort) order.sort(comparison(sheet, this.#sort));
    return order;
  }

  #header(sheet, text, column) {
    const numeric = sheet.numeric[column] && "number";
    if (!this.props.sortable)
      return el("th", { scope: "col", class: numeric, dir: "auto" }, asText(text));
    const down = this.#sort?.column === column ? this.#sort.down : null;
    const next = down === null ? { column, down: false } : down ? null : { column, down: true };
    const sign = el(
      "span",
      { "class": "sort", "aria-hidden": "true" },
      down === null ? "↕" : down ? "↓" : "↑",
    );
    return el(
      "th",
      {
        "scope": "col",
        "class": numeric,
        "aria-sort": down === null ? "none" : down ? "descending" : "ascending",
      },
      el(
        "button",
        { type: "button", onclick: () => this.#reset({ sort: next }) },
        asText(text),
        sign,
      ),
    );
  }
}

function sheetsOf({ title, headers, rows, tabs, highlight }) {
  const own = { name: asText(title) || "Table", headers, rows, highlight };
  const named = asList(tabs);
  const sheets = named.length && !asList(rows).length ? named : [own, ...named];
  return sheets.map(sheetOf);
}

function sheetOf(source) {
  const rows = asList(source?.rows);
  const width = Math.max(
    1,
    asList(source?.headers).length,
    ...rows.slice(0, 1000).map((row) => asList(row).length),
  );
  const headers = Array.from(
    { length: width },
    (_, column) => asList(source?.headers)[column] ?? "",
  );
  const numeric = headers.map((_, column) => isNumeric(rows, column));
  const highlight = new Set(asList(source?.highlight));
  return { name: asText(source?.name) || "Table", headers, rows, width, numeric, highlight };
}

/** A column of numbers: nothing else in its first rows, empty cells aside. */
function isNumeric(rows, column) {
  const cells = rows
    .slice(0, 100)
    .map((row) => asList(row)[column])
    .filter((cell) => cell != null && cell !== "");
  return (
    cells.length > 0 &&
    cells.every((cell) => typeof cell === "number" || NUMERIC.test(asText(cell)))
  );
}

function bodyRow(sheet, index) {
  const marked = sheet.highlight.has(index);
  const row = asList(sheet.rows[index]);
  const cells = sheet.headers.map((_, column) =>
    el(
      "td",
      { class: sheet.numeric[column] && "number", dir: "auto" },
      marked && column === 0 && el("span", { class: "unseen" }, "highlighted: "),
      linked(cellText(row[column])),
    ),
  );
  return el("tr", { class: marked && "marked" }, cells);
}

function cellText(cell) {
  return cell !== null && typeof cell === "object" ? "…" : asText(cell);
}

function comparison(sheet, { column, down }) {
  const key = (index) => asList(sheet.rows[index])[column];
  const numberOf = (cell) =>
    typeof cell === "number" ? cell : parseFloat(asText(cell).replace(/[^\d.eE+-]/g, ""));
  const compare = sheet.numeric[column]
    ? (a, b) => numberOf(a) - numberOf(b)
    : (a, b) => collator.compare(cellText(a), cellText(b));
  return (a, b) => {
    const [left, right] = [key(a), key(b)];
    const empty = (left == null || left === "") - (right == null || right === "");
    return empty || (down ? -1 : 1) * compare(left, right) || a - b;
  };
}
