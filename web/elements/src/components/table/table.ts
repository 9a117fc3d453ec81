/** A table: rows under headers. */

import { questionState, type Json, type JsonObject } from "@agent-rendering/core";
import { html, nothing, type PropertyDeclarations, type PropertyValues } from "lit";
import { fileName, saveFile } from "../../base/clipboard.js";
import { define } from "../../base/element.js";
import { exportMenu, type Offer } from "../../base/export_menu.js";
import { icon } from "../../base/icons.js";
import { missing, tailOf, type Tail } from "./decimals.js";
import { decimalsOf, withoutNoise, written } from "./figures.js";
import { watchEdges } from "./edges.js";
import { columnKind, sorted, type CellValue, type ColumnKind, type Direction, type Row } from "./sort.js";
import { TableRows, WINDOWED } from "./rows.js";
import { tabList } from "../../base/tablist.js";
import { copyFrom } from "../../base/toolbar.js";
import { freshId, isObject, list, number, objects, text } from "../../base/values.js";
import { styled } from "../../base/styled.js";
import { addStyles } from "../../style/sheet.js";
import styles from "../../style/table.css?inline";
import { QuestionElement } from "../question.js";

/** One tab of the table, or its only content. */
interface Sheet {
  readonly name: string;
  readonly headers: readonly string[];
  readonly rows: readonly Row[];
  /** Type of each column; there may be more columns than headers. */
  readonly kinds: readonly ColumnKind[];
  readonly tails: readonly (Tail | null)[];
  /** Number of decimals in each column; `null` shows each number as it is. */
  readonly decimals: readonly (number | null)[];
  readonly marked: ReadonlySet<number>;
}

/** Column and direction of the current order. */
interface Sorting {
  readonly column: number;
  readonly direction: Direction;
}

type Format = "CSV" | "TSV" | "Markdown";

const exporters = () => import("@agent-rendering/core/export");
/**
 * Limits of a column's width in characters, in long tables. There only visible rows are drawn, so widths by content
 * would change while the user scrolls.
 */
const [NARROWEST, WIDEST] = [6, 34];
/**
 * In short tables columns share the width. A text of up to `WORDS` characters stays on one line; the column of a
 * longer one is at least `LEAST_LINE` to `LONGEST_LINE` characters wide. The unit is a digit, which is wider than most
 * letters.
 */
const [WORDS, LEAST_LINE, LONGEST_LINE] = [16, 14, 26];
/** Number of columns below which columns of long texts get only the least width. */
const MANY = 4;
/** Most rows of a table that is shown whole, without a scroll bar of its own. */
const SHORT = 12;

/** `<arp-table>`: rows can be sorted, filtered, copied and saved, and selected if the agent asks for that. */
export class ArpTable extends QuestionElement {
  static override properties: PropertyDeclarations = {
    chosen: { state: true },
    wanted: { state: true },
    sorting: { state: true },
    order: { state: true },
    picked: { state: true },
  };

  declare chosen: number;
  declare wanted: string;
  declare sorting: Sorting | null;
  /** Indexes of the rows in sorted order; `null` for the order of the agent. */
  declare order: Int32Array | null;
  /** Indexes of the rows that are selected and not sent yet. */
  declare picked: ReadonlySet<number>;
  readonly #id = freshId("table");
  #rows: TableRows | null = null;
  #unwatch: (() => void) | null = null;
  #sheets: readonly Sheet[] = [];
  /** Indexes of the rows that pass the filter, in order. */
  #shown: readonly number[] = [];
  /** Searchable text of each row; created with the first search. */
  #searchable: readonly string[] | null = null;
  #runs = 0;

  constructor() {
    super();
    Object.assign(this, { chosen: 0, wanted: "", sorting: null, order: null, picked: new Set() });
  }

  override connectedCallback(): void {
    super.connectedCallback();
    addEventListener("beforeprint", this.#beforePrint);
    addEventListener("afterprint", this.#afterPrint);
    this.#watch();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    removeEventListener("beforeprint", this.#beforePrint);
    removeEventListener("afterprint", this.#afterPrint);
    this.#unwatch?.();
    this.#unwatch = null;
  }

  /** Watch the edges of the scrolling box, as soon as it is drawn. */
  #watch(): void {
    const box = this.querySelector<HTMLElement>(".arp-table-scroll");
    const table = box?.querySelector("table");
    if (box?.parentElement && table) this.#unwatch ??= watchEdges(box.parentElement, box, table);
  }

  readonly #beforePrint = (): void => this.#rows?.showAll(true);
  readonly #afterPrint = (): void => this.#rows?.showAll(false);

  protected override willUpdate(changed: PropertyValues): void {
    if (this.component === null) return;
    const asks = questionState(this.component) !== null;
    if (asks) super.willUpdate(changed);
    if (changed.has("component")) {
      const { props } = this.component;
      const tabs = objects(props.tabs);
      // Only the component's own rows can be selected. In such a table they are the first sheet, and tabs follow.
      // Without selection the tabs replace them.
      this.#sheets = (
        tabs.length === 0 ? [props] : asks ? [{ ...props, name: text(props.title) || "–" }, ...tabs] : tabs
      ).map(sheetOf);
      this.picked = new Set([...this.picked].filter((at) => at < (this.#sheets[0]?.rows.length ?? 0)));
      if (this.sorting) void this.#sort(this.sorting, false);
    }
    if (["component", "context", "chosen"].some((name) => changed.has(name))) this.#searchable = null;
    this.#shown = this.#visible();
  }

  get #sheet(): Sheet {
    return this.#sheets[Math.min(this.chosen, this.#sheets.length - 1)] as Sheet;
  }

  protected override draw({ title, searchable, sortable }: JsonObject): unknown {
    const sheet = this.#sheet;
    const isLong = sheet.rows.length > WINDOWED;
    const wide = isLong ? widths(sheet) : [];
    const least = isLong ? [] : leastWidths(sheet);
    const heading = text(title);
    const hasTabs = this.#sheets.length > 1 || sheet.name !== "";
    const name = heading || sheet.name || this.t("tableName");
    const state = this.component ? questionState(this.component) : null;
    return html`<section class="arp-card arp-table" data-state=${state ?? nothing} tabindex=${state === null ? nothing : -1} role="group" aria-labelledby=${heading ? this.#id : nothing} aria-label=${heading ? nothing : name}>
      <header>
        ${heading ? html`<h3 class="arp-title" id=${this.#id} dir="auto">${heading}</h3>` : html`<span class="arp-note">${this.t("rows", { count: sheet.rows.length })}</span>`}
        ${searchable === true || isLong ? this.#filter() : nothing}
        ${this.#menu(name)}
      </header>
      ${hasTabs ? tabList({ id: this.#id, label: name, tabs: this.#sheets.map((one) => one.name), active: Math.min(this.chosen, this.#sheets.length - 1), choose: (at) => this.#choose(at) }) : nothing}
      <div class="arp-table-frame"><div class="arp-table-scroll" tabindex="0" ?data-tall=${sheet.rows.length > SHORT} role=${hasTabs ? "tabpanel" : "group"} id=${hasTabs ? `${this.#id}-panel` : nothing} aria-label=${name}>
        <table aria-rowcount=${isLong ? sheet.rows.length + 1 : nothing} class=${isLong ? "arp-long" : ""} ${styled(isLong ? { "--_arp-wide": String(wide.reduce((sum, one) => sum + one, this.#picks ? 5 : 0)) } : {})}>
          <caption class="arp-hidden">${name}, ${this.t("rows", { count: sheet.rows.length })}</caption>
          ${isLong ? html`<colgroup>${this.#picks ? html`<col ${styled({ width: "5ch" })} />` : nothing}${wide.map((width, at) => html`<col ${styled(this.#picks && at === wide.length - 1 ? {} : { width: `${width}ch` })} />`)}</colgroup>` : nothing}
          <thead><tr aria-rowindex=${isLong ? 1 : nothing}>${this.#picks ? html`<th scope="col" class="arp-pick"><span class="arp-hidden">${this.t("choose")}</span></th>` : nothing}${sheet.headers.map((header, at) => this.#header(header, at, sortable === true || isLong, least[at]))}</tr></thead>
          <tbody @change=${(event: Event) => this.#pick(event.target as HTMLInputElement)}></tbody>
        </table>
        ${sheet.rows.length === 0 ? html`<p class="arp-note arp-empty">${this.t("noRows")}</p>` : nothing}
      </div></div>
      <p class="arp-note arp-count" role="status">${this.#count()}</p>
      ${state === null ? nothing : this.#submit()}
    </section>`;
  }

  /** Whether the sheet shows checkboxes, also after the answer. Rows of tabs cannot be selected. */
  get #picks(): boolean {
    return (
      this.component !== null &&
      questionState(this.component) !== null &&
      Math.min(this.chosen, this.#sheets.length - 1) === 0
    );
  }

  /** Indexes of the selected rows: the current selection, or the answer. */
  get #taken(): ReadonlySet<Json> {
    const { given, open, picked } = this;
    if (open) return picked;
    const taken = isObject(given) ? given.selected : given;
    return new Set(Array.isArray(taken) ? taken : [taken ?? null]);
  }

  #pick({ value, checked, type }: HTMLInputElement): void {
    const picked = new Set(type === "radio" ? [] : this.picked);
    if (checked) picked.add(Number(value));
    else picked.delete(Number(value));
    this.picked = picked;
  }

  /** Draw or update the checkbox before the cells of a row. */
  #box(row: HTMLTableRowElement, at: number, taken: ReadonlySet<Json>, isOpen: boolean): void {
    let box = row.querySelector<HTMLInputElement>(".arp-pick > input");
    if (box === null) {
      box = document.createElement("input");
      box.name = `${this.#id}-row`;
      const cell = document.createElement("td");
      cell.className = "arp-pick";
      cell.append(box);
      row.prepend(cell);
    }
    const type = this.component?.props.selectable === "one" ? "radio" : "checkbox";
    Object.assign(box, { type, value: String(at), checked: taken.has(at), disabled: !isOpen });
    box.setAttribute("aria-label", this.#cellText(this.#sheet.rows[at]?.[0]) || String(at + 1));
  }

  #submit(): unknown {
    const { t, picked, open } = this;
    const rows = [...picked].sort((one, other) => one - other);
    return html`<div class="arp-actions">
      ${open || this.sent !== null ? html`<button type="button" class="arp-button" ?disabled=${!open || rows.length === 0} @click=${() => this.reply(this.component?.props.selectable === "one" ? (rows[0] as number) : rows)}>${t("submit")}</button>` : nothing}
      ${this.declining()}
      <span class="arp-note" role="status">${open && rows.length > 0 ? t("chosen", { count: rows.length }) : nothing}</span>
      ${this.standing()}
    </div>`;
  }

  #count(): unknown {
    const { rows } = this.#sheet;
    if (this.wanted !== "") return this.t("filtered", { count: this.#shown.length, all: rows.length });
    return rows.length > WINDOWED ? this.t("rows", { count: rows.length }) : nothing;
  }

  #header(header: string, column: number, isSortable: boolean, least: number | undefined): unknown {
    const { t, sorting } = this;
    const isNumber = this.#sheet.kinds[column] === "number";
    const room = styled(least === undefined ? {} : { "--_arp-least": String(least) });
    if (!isSortable) return html`<th scope="col" class=${isNumber ? "arp-number" : ""} ${room}>${header}</th>`;
    const direction = sorting?.column === column ? sorting.direction : null;
    const next: Direction = direction === "ascending" ? "descending" : "ascending";
    const label = t(next === "ascending" ? "sortAscending" : "sortDescending", { column: header });
    return html`<th scope="col" class=${isNumber ? "arp-number" : ""} aria-sort=${direction ?? "none"} ${room}>
      <button type="button" class="arp-sort" title=${label} @click=${() => void this.#sort({ column, direction: next }, true)}>
        <span dir="auto">${header}</span>${icon(direction === null ? "both" : direction === "ascending" ? "up" : "down")}
      </button></th>`;
  }

  #filter(): unknown {
    const { t } = this;
    return html`<label class="arp-search">${icon("search")}<span class="arp-hidden">${t("filter")}</span>
      <input class="arp-input" type="search" dir="auto" placeholder=${t("filter")} .value=${this.wanted} @input=${(event: Event) => (this.wanted = (event.target as HTMLInputElement).value)} /></label>`;
  }

  #menu(name: string): unknown {
    const { t } = this;
    const copies: Format[] = ["CSV", "TSV", "Markdown"];
    const offers: Offer[] = copies.map((format) => [t("copyAs", { format }), (event) => this.#copy(event, format)]);
    return exportMenu(
      "copy",
      t("copy"),
      [...offers, [`${t("download")} (CSV)`, () => this.#save(name)]],
      () => void exporters(),
    );
  }

  async #as(format: Format): Promise<string> {
    const { headers, rows } = this.#sheet;
    const shown = this.#shown.map((at) => rows[at] as Row);
    const { toCsv, toMarkdownTable, toTsv } = await exporters();
    return { CSV: toCsv, TSV: toTsv, Markdown: toMarkdownTable }[format](headers, shown);
  }

  async #copy(event: Event, format: Format): Promise<void> {
    const menu = (event.currentTarget as HTMLElement).closest("details") as HTMLDetailsElement;
    const content = await this.#as(format);
    await copyFrom(menu.querySelector("summary") as HTMLElement, content, this.context);
    menu.open = false;
    menu.querySelector("summary")?.focus();
  }

  async #save(name: string): Promise<void> {
    saveFile(fileName(name, "csv"), `\ufeff${await this.#as("CSV")}`, "text/csv");
  }

  /** Return the node of a row by its index; `null` if it is not in the document. */
  rowOf(number: number): HTMLElement | null {
    return this.#rows?.nodeOf(number) ?? null;
  }

  #choose(at: number): void {
    this.chosen = at;
    this.sorting = this.order = null;
  }

  /** Sort the rows. The result is dropped if another sort began meanwhile: it would show an outdated order. */
  async #sort(sorting: Sorting, isAnnounced: boolean): Promise<void> {
    const run = (this.#runs += 1);
    const { rows, headers } = this.#sheet;
    this.sorting = sorting;
    const order = await sorted(rows, sorting.column, sorting.direction, this.t.locale);
    if (run !== this.#runs) return;
    this.order = order;
    const column = headers[sorting.column] ?? "";
    if (isAnnounced)
      this.context.announce(this.t(sorting.direction === "ascending" ? "sortedUp" : "sortedDown", { column }));
  }

  #visible(): readonly number[] {
    const { rows } = this.#sheet;
    const isFit = this.order?.length === rows.length;
    const all = isFit && this.order ? Array.from(this.order) : rows.map((_, at) => at);
    const words = this.#lower(this.wanted).split(/\s+/).filter(Boolean);
    if (words.length === 0) return all;
    const searchTexts = (this.#searchable ??= rows.map((row) =>
      this.#lower(row.map((cell, column) => this.#searchText(cell, column)).join("\n")),
    ));
    return all.filter((at) => words.every((word) => searchTexts[at]?.includes(word)));
  }

  #lower(words: string): string {
    return words.toLocaleLowerCase(this.t.locale);
  }

  #cellText(cell: CellValue | undefined, column = 0): string {
    return typeof cell === "boolean"
      ? this.t(cell ? "confirm" : "deny")
      : written(cell, this.#sheet.decimals[column] ?? null);
  }

  /** Return the text of a cell as shown, and for a rounded number all its digits as well. */
  #searchText(cell: CellValue | undefined, column: number): string {
    const whole = this.#wholeText(cell, column);
    return whole === null ? this.#cellText(cell, column) : `${this.#cellText(cell, column)}\n${whole}`;
  }

  /** Return all digits of a number that is shown rounded; `null` for any other cell. */
  #wholeText(cell: CellValue | undefined, column: number): string | null {
    return typeof cell === "number" && Number(this.#cellText(cell, column)) !== withoutNoise(cell)
      ? String(withoutNoise(cell))
      : null;
  }

  protected override drawn(): void {
    const body = this.querySelector("tbody");
    const box = this.querySelector<HTMLElement>(".arp-table-scroll");
    if (body === null || box === null) return;
    // Before the rows: this measures the box and they change it. In the other order each change would force a layout.
    this.#watch();
    if (this.#rows === null || !body.hasChildNodes()) this.#rows = new TableRows(body, box);
    const { rows, kinds, tails, decimals, marked } = this.#sheet;
    const { open } = this;
    const taken = this.#taken;
    this.#rows.show(rows, this.#shown, {
      ...(this.#picks && { lead: (row: HTMLTableRowElement, at: number) => this.#box(row, at, taken, open) }),
      classes: kinds.map((kind) => ({ number: "arp-number", date: "arp-date", text: "" })[kind]),
      tails,
      decimals,
      text: (cell, column) => this.#cellText(cell, column),
      whole: (cell, column) => this.#wholeText(cell, column),
      isMarked: (at) => marked.has(at),
    });
  }
}

/** Return a sheet from its props. Cells that are objects or lists become JSON. */
function sheetOf({ name, headers, rows, highlight }: JsonObject): Sheet {
  const names = list(headers).map(text);
  // Well-formed rows stay the same arrays: `TableRows` compares them by identity to keep the nodes of unchanged rows.
  const cells = list(rows).map((row) =>
    Array.isArray(row) && row.every(isCell)
      ? (row as Row)
      : list(row).map((cell) => (isCell(cell) ? cell : JSON.stringify(cell))),
  );
  const columns = cells.slice(0, 1000).reduce((most, row) => Math.max(most, row.length), names.length);
  const kinds = Array.from({ length: columns }, (_, column) => columnKind(cells, column));
  const decimals = kinds.map((_, column) => decimalsOf(cells, column));
  return {
    name: text(name),
    headers: names,
    rows: cells,
    kinds,
    tails: kinds.map((kind, column) => (kind === "number" ? tailOf(cells, column, decimals[column] ?? null) : null)),
    decimals,
    marked: new Set(list(highlight).flatMap((at) => number(at) ?? [])),
  };
}

function isCell(value: Json): value is CellValue {
  return value === null || typeof value !== "object";
}

/** Return the widths of the columns in characters, by their content. */
function widths(sheet: Sheet): number[] {
  return sheet.headers.map((header, at) =>
    Math.min(WIDEST, Math.max(NARROWEST, [...header].length + 5, longest(sheet, at) + 3)),
  );
}

/** Return the least width of each text column in characters, so that no column shrinks to one word per line. */
function leastWidths(sheet: Sheet): number[] {
  return sheet.headers.map((_, at) => {
    const most = sheet.kinds[at] === "text" ? longest(sheet, at) : 0;
    return most <= WORDS
      ? 0.9 * most
      : Math.min(LONGEST_LINE, LEAST_LINE + (sheet.headers.length < MANY ? 0 : Math.round(most / 10)));
  });
}

/** Return the length of the longest cell of a column in characters, in a sample of at most 500 rows. */
function longest({ rows, tails, decimals }: Sheet, column: number): number {
  const tail = tails[column];
  let most = 0;
  for (let row = 0; row < rows.length; row += Math.ceil(rows.length / 500)) {
    const shown = written(rows[row]?.[column], decimals[column] ?? null);
    most = Math.max(most, shown.length + (tail ? missing(shown, tail).length : 0));
  }
  return most;
}

addStyles(styles);
define("arp-table", ArpTable);
