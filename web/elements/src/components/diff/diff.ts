/** The changes between two texts. */

import type { JsonObject } from "@agent-rendering/core";
import { html, nothing, type PropertyDeclarations, type PropertyValues } from "lit";
import { difference, patchOf, type DiffLine, type Difference, type Fold } from "./rows.js";
import { hasGrammars, linesOf, loadGrammars, read, stretchNode, wantsColours } from "../../code/highlight.js";
import type { Stretch } from "../../code/grammars.js";
import { ComponentElement } from "../../base/component_element.js";
import { define } from "../../base/element.js";
import { copyButton } from "../../base/toolbar.js";
import { freshId, text } from "../../base/values.js";
import { addStyles } from "../../style/sheet.js";
import styles from "../../style/diff.css?inline";

/** Width below which both texts are shown in one column. */
const NARROW_PX = 640;
/** Number of rows in one part. The browser lays out only visible parts. */
const CHUNK = 150;
const BUDGET_MS = 8;

type Shown = DiffLine | Fold;
/** A row of two columns; `null` is an empty side. */
interface Pair {
  readonly left: DiffLine | null;
  readonly right: DiffLine | null;
}

/** `<arp-diff>`: changed lines and words, in one column or side by side. */
export class ArpDiff extends ComponentElement {
  static override properties: PropertyDeclarations = {
    found: { state: true },
    isSplit: { state: true },
    isNarrow: { state: true },
  };

  declare found: Difference | null;
  declare isSplit: boolean;
  declare isNarrow: boolean;
  readonly #id = freshId("diff");
  #observer: ResizeObserver | null = null;
  #colours: { before: Stretch[][]; after: Stretch[][] } | null = null;
  #drawnFor: unknown[] = [];
  #compared: unknown[] = [];
  #stopDrawing: () => void = () => undefined;

  constructor() {
    super();
    Object.assign(this, { found: null, isSplit: false, isNarrow: false });
  }

  override connectedCallback(): void {
    super.connectedCallback();
    if (typeof ResizeObserver === "undefined") return;
    this.#observer = new ResizeObserver(() => (this.isNarrow = this.clientWidth > 0 && this.clientWidth < NARROW_PX));
    this.#observer.observe(this);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#observer?.disconnect();
    this.#stopDrawing();
  }

  protected override willUpdate(changed: PropertyValues): void {
    if (!changed.has("component") || this.component === null) return;
    const { before, after } = this.component.props;
    // A change of other props, such as the title, must not compare long texts again.
    const key = [before, after];
    if (key.every((one, at) => one === this.#compared[at]) && this.#compared.length > 0) return;
    this.#compared = key;
    this.#colours = null;
    void difference(text(before), text(after)).then((found) => {
      // Another comparison may have begun meanwhile; its result must not be replaced by this older one.
      if (this.#compared === key) this.found = found;
    });
  }

  protected override draw({ title, before_label: old, after_label: now }: JsonObject): unknown {
    const { t, found } = this;
    const heading = text(title) || t("changes");
    const names = [text(old), text(now)].filter(Boolean).join(" → ");
    return html`<section class="arp-card arp-diff" role="group" aria-labelledby=${this.#id}>
      <header>
        <h3 class="arp-title" id=${this.#id} dir="auto">${heading}</h3>
        ${names ? html`<span class="arp-note" dir="auto">${names}</span>` : nothing}
        ${
          found
            ? html`<span class="arp-diff-sum" dir="ltr" aria-hidden="true"><span data-kind="added">+${t.number(found.added)}</span> <span data-kind="removed">−${t.number(found.removed)}</span></span>
          <span class="arp-hidden">${t("added", { count: found.added })}, ${t("removed", { count: found.removed })}</span>`
            : nothing
        }
        <span class="arp-tools">
          ${this.isNarrow ? nothing : html`<button type="button" class="arp-button arp-quiet" aria-pressed=${String(this.isSplit)} @click=${() => (this.isSplit = !this.isSplit)}>${t("split")}</button>`}
          ${found ? copyButton(this.context, t("copyAs", { format: "patch" }), () => patchOf(found, text(old) || t("before"), text(now) || t("after"))) : nothing}
        </span>
      </header>
      <div class="arp-diff-rows" dir="ltr" tabindex="0" role="group" aria-label=${heading}>${found !== null && found.rows.every(({ kind }) => kind === "fold") ? html`<p class="arp-note">${t("noChanges")}</p>` : nothing}<div class="arp-diff-place"></div></div>
    </section>`;
  }

  protected override drawn(): void {
    const place = this.querySelector<HTMLElement>(".arp-diff-place");
    const { found, component } = this;
    if (place === null || found === null || component === null) return;
    const isSplit = this.isSplit && !this.isNarrow;
    this.#colour(component.props);
    // Rows are drawn outside of Lit. Drawing them at each update would lose the scroll position and opened folds.
    const key = [found, isSplit, this.#colours, place];
    if (key.every((one, at) => one === this.#drawnFor[at])) return;
    this.#drawnFor = key;
    this.#stopDrawing();
    place.replaceChildren();
    this.#stopDrawing = inSlices(
      found.rows.every(({ kind }) => kind === "fold") ? [] : this.#rows(found.rows, isSplit),
      place,
      isSplit,
    );
  }

  /** Compute the colours of both texts, as soon as the grammars are loaded. */
  #colour({ before, after, language }: JsonObject): void {
    const name = text(language);
    if (this.#colours !== null || !wantsColours(text(before) + text(after), name)) return;
    if (!hasGrammars()) void loadGrammars().then(() => hasGrammars() && this.requestUpdate());
    else this.#colours = { before: linesOf(read(text(before), name)), after: linesOf(read(text(after), name)) };
  }

  /** Return a function for each row, so that the nodes are created in slices of time. */
  #rows(rows: readonly Shown[], isSplit: boolean): (() => HTMLTableRowElement)[] {
    if (!isSplit)
      return rows.map(
        (row) => () =>
          row.kind === "fold"
            ? this.#fold(row, isSplit)
            : this.#row(
                [this.#numberCell(row.before), this.#numberCell(row.after), this.#signCell(row), this.#textCell(row)],
                row.kind,
              ),
      );
    return paired(rows).map(
      (row) => () =>
        "lines" in row
          ? this.#fold(row, isSplit)
          : this.#row([...this.#side(row.left, "before"), ...this.#side(row.right, "after")], ""),
    );
  }

  /** Return the three cells of one side. */
  #side(line: DiffLine | null, side: "before" | "after"): HTMLElement[] {
    if (line === null) return [cell("arp-diff-none"), cell("arp-diff-none"), cell("arp-diff-none")];
    return [this.#numberCell(line[side]), this.#signCell(line), this.#textCell(line)];
  }

  #row(cells: HTMLElement[], kind: string): HTMLTableRowElement {
    const row = document.createElement("tr");
    if (kind !== "" && kind !== "same") row.dataset.kind = kind;
    row.append(...cells);
    return row;
  }

  #numberCell(number: number | null): HTMLElement {
    const made = cell("arp-diff-number");
    made.textContent = number === null ? "" : String(number);
    return made;
  }

  #signCell({ kind }: DiffLine): HTMLElement {
    const made = cell("arp-diff-sign");
    made.dataset.kind = kind;
    made.textContent = kind === "added" ? "+" : kind === "removed" ? "−" : "";
    return made;
  }

  #textCell(line: DiffLine): HTMLElement {
    const made = cell("arp-diff-text");
    made.dataset.kind = line.kind;
    const coloured =
      line.kind === "added"
        ? this.#colours?.after[(line.after ?? 0) - 1]
        : this.#colours?.before[(line.before ?? 0) - 1];
    const stretches = coloured ?? [{ text: line.text, kind: "" }];
    made.append(...(line.segments === null ? stretches.map(stretchNode) : marked(stretches, line)));
    return made;
  }

  /** Return the row with the button that shows the hidden lines. */
  #fold({ lines }: Fold, isSplit: boolean): HTMLTableRowElement {
    const made = cell("arp-diff-fold");
    made.setAttribute("colspan", isSplit ? "6" : "4");
    const button = Object.assign(document.createElement("button"), {
      type: "button",
      className: "arp-button arp-quiet",
    });
    button.textContent = this.t("unchanged", { count: lines.length });
    const row = this.#row([made], "");
    button.addEventListener("click", () => {
      const rows = this.#rows(lines, isSplit).map((make) => make());
      row.replaceWith(...rows);
      rows[0]?.closest<HTMLElement>("[tabindex]")?.focus({ preventScroll: true });
    });
    made.append(button);
    return row;
  }
}

function cell(className: string): HTMLTableCellElement {
  return Object.assign(document.createElement("td"), { className });
}

/** Return rows for two columns: removed lines beside the added lines that replace them. */
function paired(rows: readonly Shown[]): (Pair | Fold)[] {
  const made: (Pair | Fold)[] = [];
  for (let at = 0; at < rows.length;) {
    const row = rows[at] as Shown;
    if (row.kind === "fold" || row.kind === "same") {
      made.push(row.kind === "fold" ? row : { left: row, right: row });
      at += 1;
      continue;
    }
    const run = (kind: string): DiffLine[] => {
      const start = at;
      while (rows[at]?.kind === kind) at += 1;
      return rows.slice(start, at) as DiffLine[];
    };
    const [removed, added] = [run("removed"), run("added")];
    for (let line = 0; line < Math.max(removed.length, added.length); line += 1)
      made.push({ left: removed[line] ?? null, right: added[line] ?? null });
  }
  return made;
}

/** Return the nodes of a line with its colours and its marked words; colours are split where a mark begins or ends. */
function marked(stretches: readonly Stretch[], { segments, kind }: DiffLine): Node[] {
  const made: Node[] = [];
  const rest = stretches.map((stretch) => ({ ...stretch }));
  for (const { text: wanted, isChanged } of segments ?? []) {
    const place = isChanged ? document.createElement(kind === "added" ? "ins" : "del") : null;
    for (let left = wanted.length; left > 0 && rest.length > 0;) {
      const first = rest[0] as { text: string; kind: string };
      const part = first.text.slice(0, left);
      const node = stretchNode({ text: part, kind: first.kind });
      if (place === null) made.push(node);
      else place.append(node);
      left -= part.length;
      first.text = first.text.slice(part.length);
      if (first.text === "") rest.shift();
    }
    if (place !== null) made.push(place);
  }
  return [...made, ...rest.map(stretchNode)];
}

/** Draw rows, for a few milliseconds per frame so that the page stays responsive. Returns a function that stops it. */
function inSlices(rows: readonly (() => HTMLTableRowElement)[], place: HTMLElement, isSplit: boolean): () => void {
  let at = 0;
  let isStopped = false;
  let body: HTMLTableSectionElement | null = null;
  const step = () => {
    const start = performance.now();
    while (at < rows.length && !isStopped && performance.now() - start < BUDGET_MS) {
      if (body === null || at % CHUNK === 0) body = chunk(place, isSplit, Math.min(CHUNK, rows.length - at));
      body.append((rows[at] as () => HTMLTableRowElement)());
      at += 1;
    }
    if (at < rows.length && !isStopped) setTimeout(step, 16);
  };
  step();
  return () => (isStopped = true);
}

/** Append a part with an empty table, and return the body of the table. `rows` reserves its height. */
function chunk(place: HTMLElement, isSplit: boolean, rows: number): HTMLTableSectionElement {
  const part = Object.assign(document.createElement("div"), { className: "arp-diff-chunk" }); // browsers skip the layout of an invisible block, but not of a table
  part.style.setProperty("--_arp-rows", String(rows));
  const table = Object.assign(document.createElement("table"), { className: isSplit ? "arp-diff-split" : "" });
  table.setAttribute("role", "presentation");
  const columns = document.createElement("colgroup");
  for (const name of isSplit
    ? ["number", "sign", "text", "number", "sign", "text"]
    : ["number", "number", "sign", "text"]) {
    columns.append(Object.assign(document.createElement("col"), { className: `arp-diff-col-${name}` }));
  }
  const body = document.createElement("tbody");
  table.append(columns, body);
  part.append(table);
  place.append(part);
  return body;
}

addStyles(styles);
define("arp-diff", ArpDiff);
