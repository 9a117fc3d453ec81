/** A chart: a drawing with a legend, a table of its data, and descriptions for screen readers. */

import type { JsonObject } from "@agent-rendering/core";
import { html, nothing, svg, type PropertyDeclarations, type PropertyValues } from "lit";
import { chartData, type ChartData, type Series } from "./data.js";
import { figure, percent } from "./numbers.js";
import { nearestPoint, walked, type Looked } from "./pick.js";
import { pie, slicesOf, textureOf, type Slice } from "./pie.js";
import { colourStyle, plot, type Plot } from "./plot.js";
import { DASHES, lookOf, markPath } from "./shapes.js";
import { fileName, saveFile } from "../../base/clipboard.js";
import { ComponentElement } from "../../base/component_element.js";
import { define } from "../../base/element.js";
import { exportMenu, type Offer } from "../../base/export_menu.js";
import { iconButton } from "../../base/toolbar.js";
import { freshId } from "../../base/values.js";
import { styled } from "../../base/styled.js";
import { addStyles } from "../../style/sheet.js";
import styles from "../../style/chart.css?inline";

const NAMES = {
  line: "chartLine",
  bar: "chartBar",
  pie: "chartPie",
  scatter: "chartScatter",
  area: "chartArea",
} as const;
const saving = () => import("./save.js");
const GUESSED_WIDTH_PX = 640;
const NARROWEST_PX = 220;
/** Width on an upright sheet of A4 or Letter, between the usual margins and those of the page. */
const PRINTED_PX = 640;

/** Most items of a legend; the others are only in the table of the data. */
const MOST_ITEMS = 100;
/** Most parts of a pie that are listed without scrolling. */
const TALL_ITEMS = 16;

/** `<arp-chart>`: arrow keys move from point to point; the data can be shown as a table. */
export class ArpChart extends ComponentElement {
  static override properties: PropertyDeclarations = {
    width: { state: true },
    dropped: { state: true },
    looked: { state: true },
    asTable: { state: true },
    spoken: { state: true },
  };

  /** Width of the drawing; 0 until it is known, because a drawing of another width would be laid out for nothing. */
  declare width: number;
  /** Indexes of the series that are switched off in the legend; for a pie, indexes of labels. */
  declare dropped: ReadonlySet<number>;
  declare looked: Looked | null;
  declare asTable: boolean;
  declare spoken: string;
  readonly #id = freshId("chart");
  #observer: ResizeObserver | null = null;
  #isPrinted = false;
  #data: ChartData = chartData({});
  #plot: Plot | null = null;
  #slices: Slice[] = [];

  constructor() {
    super();
    Object.assign(this, { width: 0, dropped: new Set(), looked: null, asTable: false, spoken: "" });
  }

  override connectedCallback(): void {
    super.connectedCallback();
    addEventListener("beforeprint", this.#print);
    addEventListener("afterprint", this.#unprint);
    if (typeof ResizeObserver === "undefined") return;
    this.#observer = new ResizeObserver(() => this.#fit());
    this.#observer.observe(this);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    removeEventListener("beforeprint", this.#print);
    removeEventListener("afterprint", this.#unprint);
    this.#observer?.disconnect();
  }

  /**
   * Draw for the width of a sheet, at once, because the browser prints right after this event. A drawing for the window
   * would be scaled to the sheet, and its texts with it.
   */
  readonly #print = (): void => {
    this.#isPrinted = true;
    this.looked = null;
    this.width = PRINTED_PX;
    this.performUpdate();
  };

  readonly #unprint = (): void => {
    this.#isPrinted = false;
    this.#fit();
  };

  #fit(): void {
    // The observer also fires during printing; the width of the window must not replace that of the sheet.
    if (this.#isPrinted) return;
    const place = this.querySelector(".arp-chart-place");
    const width = place?.clientWidth ?? 0;
    if (width > 0) this.width = Math.max(NARROWEST_PX, Math.round(width));
    else if (this.width === 0) this.width = GUESSED_WIDTH_PX;
  }

  protected override drawn(): void {
    if (this.width === 0) this.#fit();
  }

  protected override willUpdate(changed: PropertyValues): void {
    if (changed.has("component") && this.component) {
      this.#data = chartData(this.component.props);
      this.looked = null;
    }
  }

  get #shown(): readonly Series[] {
    return this.#data.kind === "pie" ? this.#data.series : this.#data.series.filter((_, at) => !this.dropped.has(at));
  }

  protected override draw(props: JsonObject): unknown {
    const { t, width } = this;
    const { kind, title, series } = this.#data;
    const isPie = kind === "pie";
    const side = Math.min(width || this.#data.height, this.#data.height);
    this.#plot = isPie || width === 0 ? null : plot(this.#data, this.#shown, width, t);
    this.#slices = isPie ? slicesOf(this.#data, this.dropped, side) : [];
    const height = this.#plot?.height ?? side;
    const across = isPie ? side : width;
    const name = title || t(NAMES[kind]);
    const isEmpty = !series.some(({ values }) => values.some((value) => value !== null));
    return html`<figure class="arp-card arp-chart" aria-labelledby=${this.#id}>
      <header>
        <figcaption class="arp-title" id=${this.#id} dir="auto">${name}</figcaption>
        <span class="arp-tools">
          ${iconButton(this.asTable ? "chart" : "table", t(this.asTable ? "showChart" : "showData"), () => this.#turn())}
          ${this.#menu(name)}
        </span>
      </header>
      ${
        this.asTable
          ? html`<arp-chart-data .props=${props} .data=${this.#data} .name=${name} .t=${t}></arp-chart-data>`
          : html`<div class=${isPie ? "arp-whole" : ""}>${isPie ? nothing : this.#legend()}
      <div
        class="arp-chart-place" ${styled(isPie ? { "--_arp-side": `${this.#data.height}px` } : {})} dir="ltr" tabindex="0" role="application" aria-roledescription=${t(NAMES[kind])} aria-label=${this.#summary(name)}
        @keydown=${this.#key} @pointermove=${this.#point} @pointerdown=${this.#point} @pointerleave=${this.#lookAway} @blur=${this.#lookAway}
      >
        <svg viewBox="0 0 ${across} ${height}" width=${across} height=${height} aria-hidden="true" focusable="false">
          ${isPie && width > 0 ? pie(this.#slices, this.#data, side, t, this.#id, this.looked?.at) : this.#plot?.drawing}${this.#cross()}
        </svg>
        ${isEmpty ? html`<p class="arp-note arp-chart-empty">${t("noData")}</p>` : nothing}
        ${this.#tip(across)}
      </div>${isPie ? this.#legend() : nothing}</div>
      <p class="arp-hidden" role="status">${this.spoken}</p>`
      }
    </figure>`;
  }

  /** Return a description of the chart for screen readers: name, kind, axes, and the range of each series. */
  #summary(name: string): string {
    const { t } = this;
    const { kind, labels, xTitle, yTitle } = this.#data;
    const ranges = this.#shown.map(({ name: series, values }) => {
      const there = values.filter((value) => value !== null);
      if (there.length === 0) return series;
      const least = there.reduce((one, other) => Math.min(one, other));
      const most = there.reduce((one, other) => Math.max(one, other));
      return t("chartRange", { series: series || name, least: this.#figure(least), most: this.#figure(most) });
    });
    return [
      name,
      t(NAMES[kind]),
      ...[yTitle, xTitle].filter(Boolean),
      t("points", { count: labels.length }),
      ...ranges,
    ].join(". ");
  }

  // -- legend ------------------------------------------------------------------------------------

  /** Return the legend: the series, or the parts of a pie with their values. */
  #legend(): unknown {
    const { kind, series, labels, xTitle, yTitle, unit } = this.#data;
    const { looked, t } = this;
    const isPie = kind === "pie";
    const names = isPie ? labels : series.map(({ name }) => name);
    if (names.length === 0 || (names.length === 1 && names[0] === "")) return nothing;
    if (names.length === 1 && !isPie)
      return html`<div class="arp-legend"><span class="arp-legend-item">${this.#swatch(0)}<span dir="auto">${names[0]}</span></span></div>`;
    const head = yTitle && unit ? `${yTitle} (${unit})` : yTitle; // so that the unit is not repeated after each value
    const slices = new Map(this.#slices.map(({ label, part }, at) => [label, { part, at }]));
    return html`<div class=${`arp-legend${isPie ? " arp-parts" : ""}${isPie && labels.length > TALL_ITEMS ? " arp-many" : ""}`} @pointerleave=${this.#lookAway}>
      ${isPie && (xTitle || head) ? html`<p class="arp-note arp-parts-head"><span dir="auto">${xTitle}</span><span dir="auto">${head}</span></p>` : nothing}
      ${names.slice(0, MOST_ITEMS).map((name, at) => {
        const slice = slices.get(at);
        const value = series[0]?.values[at];
        const look = () => isPie && (this.looked = slice ? { at: slice.at, series: 0 } : null);
        return html`<button type="button" class="arp-legend-item" aria-pressed=${String(!this.dropped.has(at))} data-picked=${slice && slice.at === looked?.at ? "" : nothing} @click=${() => this.#toggle(at)} @pointerenter=${look}>${this.#swatch(at)}<span dir="auto">${name || t.number(at + 1)}</span>${isPie && series.length === 1 ? html`<b dir="ltr">${value == null ? "–" : figure(value, yTitle ? "" : unit, t)}</b><b class="arp-part">${slice ? percent(slice.part, t) : "–"}</b>` : nothing}</button>`;
      })}${names.length > MOST_ITEMS ? html`<p class="arp-note">… ${t.number(names.length - MOST_ITEMS)}</p>` : nothing}</div>`;
  }

  /** Return a sample of the look of a series, or of a part of a pie. */
  #swatch(at: number): unknown {
    const { kind, series, labels } = this.#data;
    if (kind === "pie") {
      const [colour, texture] = lookOf(at, labels.length);
      const box = (fill: string | typeof nothing) =>
        svg`<rect x="5" width="12" height="12" rx="3" fill=${fill}></rect>`;
      return html`<svg class="arp-swatch arp-series" viewBox="0 0 22 12" data-look=${colour} aria-hidden="true">${box(nothing)}${texture ? box(textureOf(this.#id, texture)) : nothing}</svg>`;
    }
    const one = series[at];
    return html`<svg class="arp-swatch arp-series" viewBox="0 0 22 12" data-look=${at % 8} ${one === undefined ? styled({}) : colourStyle(one)} aria-hidden="true">${
      kind === "bar"
        ? svg`<rect x="5" width="12" height="12" rx="3"></rect>`
        : svg`${kind === "scatter" ? nothing : svg`<path class="arp-line-path" d="M0,6H22" stroke-dasharray=${DASHES[at % DASHES.length] || nothing}></path>`}<path class="arp-mark" transform="translate(11 6)" d=${markPath(at, 3.5)}></path>`
    }</svg>`;
  }

  #toggle(at: number): void {
    const hidden = new Set(this.dropped);
    if (!hidden.delete(at)) hidden.add(at);
    this.dropped = hidden;
    this.looked = null;
  }

  // -- the selected point ------------------------------------------------------------------------

  /** Return a value with its unit. */
  #figure(value: number): string {
    return figure(value, this.#data.unit, this.t);
  }

  readonly #lookAway = (event?: Event): void => {
    // A finger that is lifted counts as having left. Without this check, the tip would vanish after each tap.
    if (event?.type === "pointerleave" && (event as PointerEvent).pointerType === "touch") return;
    this.looked = null;
  };

  /** Select the point under the pointer, or the nearest one. */
  readonly #point = (event: PointerEvent): void => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    if (this.#plot !== null) {
      const { columns, points } = this.#plot;
      const isScatter = this.#data.kind === "scatter";
      const near = nearestPoint(isScatter ? points : [columns.map((column) => [column, y] as const)], x, y);
      const apart = points.map((series) => Math.abs((series[near?.at ?? -1]?.[1] ?? Infinity) - y));
      this.looked = near && {
        at: near.at,
        series: isScatter ? near.series : Math.max(0, apart.indexOf(Math.min(...apart))),
      };
      return;
    }
    const { height } = this.#data;
    const path = (event.target as Element).closest(".arp-slice");
    const at = path ? [...(path.parentElement as Element).children].indexOf(path) : -1;
    this.looked = at < 0 || height === 0 ? null : { at, series: 0 };
  };

  /** Move the selection with the keyboard, and announce the new point. */
  readonly #key = (event: KeyboardEvent): void => {
    const count = this.#plot ? this.#plot.columns.length : this.#slices.length;
    const sets = this.#plot ? this.#shown.length : 1;
    if (count === 0 || sets === 0) return;
    const { at, series } = this.looked ?? { at: -1, series: 0 };
    const spot =
      this.#plot && this.#data.kind === "scatter" ? walked(this.#plot.points, this.looked, event.key) : undefined;
    const moved = spot
      ? [spot.at, spot.series]
      : {
          ArrowRight: [Math.min(count - 1, at + 1), series],
          ArrowLeft: [Math.max(0, at - 1), series],
          ArrowDown: [Math.max(0, at), (series + 1) % sets],
          ArrowUp: [Math.max(0, at), (series - 1 + sets) % sets],
          Home: [0, series],
          End: [count - 1, series],
        }[event.key];
    // Only with a selection: otherwise Escape must reach the dialog or panel around the chart.
    if (event.key === "Escape" && this.looked !== null) {
      event.stopPropagation();
      this.looked = null;
    }
    if (moved === undefined) return;
    event.preventDefault();
    this.looked = { at: moved[0] as number, series: moved[1] as number };
    this.spoken = this.#description(this.looked);
  };

  /** Return a description of a point for screen readers. */
  #description({ at, series }: Looked): string {
    const { t } = this;
    const { labels, xTitle } = this.#data;
    if (this.#plot === null) {
      const slice = this.#slices[at];
      return slice ? `${labels[slice.label]}: ${this.#figure(slice.value)} (${percent(slice.part, t)})` : "";
    }
    const one = this.#shown[series];
    const value = one?.values[at];
    const label = xTitle && labels[at] ? `${xTitle}: ${labels[at]}` : labels[at];
    return [label, `${one?.name ? `${one.name}: ` : ""}${value == null ? t("noData") : this.#figure(value)}`]
      .filter(Boolean)
      .join(", ");
  }

  /** Return the lines and rings that mark the selected point. */
  #cross(): unknown {
    const { looked } = this;
    if (looked === null || this.#plot === null) return nothing;
    const { columns, points, top, bottom, left, right } = this.#plot;
    const x = columns[looked.at];
    if (x === undefined || !Number.isFinite(x)) return nothing;
    const rings = points.map((series, at) => {
      const point = series[looked.at];
      const one = this.#shown[at];
      if (!point || !one || (this.#data.kind === "scatter" && at !== looked.series)) return nothing;
      return svg`<circle class="arp-series arp-looked" data-look=${one.look % 8} ${colourStyle(one)} cx=${point[0]} cy=${point[1]} r=${at === looked.series ? 6 : 4.5}></circle>`;
    });
    const y = this.#data.kind === "scatter" ? points[looked.series]?.[looked.at]?.[1] : undefined;
    return svg`<g class="arp-cross"><line x1=${x} x2=${x} y1=${top} y2=${bottom}></line>${y === undefined ? nothing : svg`<line x1=${left} x2=${right} y1=${y} y2=${y}></line>`}${this.#data.kind === "bar" ? nothing : rings}</g>`;
  }

  /** Return the box with the values of the selected point, on the side with more room. */
  #tip(width: number): unknown {
    const { looked, t } = this;
    if (looked === null) return nothing;
    const { labels, kind, xTitle } = this.#data;
    const slice = this.#slices[looked.at];
    const isScatter = kind === "scatter";
    const x = this.#plot ? (this.#plot.columns[looked.at] ?? 0) : width / 2 + (slice?.middle[0] ?? 0);
    const y = this.#plot
      ? isScatter
        ? (this.#plot.points[looked.series]?.[looked.at]?.[1] ?? 0)
        : 0
      : width / 2 + (slice?.middle[1] ?? 0);
    const isRight = x > width / 2;
    const side = {
      [isRight ? "right" : "left"]: `${(isRight ? width - x : x) + 14}px`,
      "max-width": `${Math.max(110, Math.min(256, (isRight ? x : width - x) - 10))}px`,
    };
    const rows = this.#plot
      ? this.#shown.flatMap((one, at) =>
          isScatter && at !== looked.series ? [] : [[one.look, one.name, one.values[looked.at]] as const],
        )
      : slice
        ? [[slice.label, percent(slice.part, t), slice.value] as const]
        : [];
    const label = labels[this.#plot ? looked.at : (slice?.label ?? 0)];
    return html`<div class="arp-tip" aria-hidden="true" ${styled({ ...side, top: `${Math.max(4, y - 20)}px` })}>
      ${label ? html`<strong dir="auto">${isScatter && xTitle ? `${xTitle}: ` : ""}${label}</strong>` : nothing}
      ${rows.slice(0, 12).map(([look, name, value]) => html`<span class="arp-tip-row">${this.#swatch(look)}<span dir="auto">${name}</span><b dir="ltr">${value == null ? "–" : this.#figure(value)}</b></span>`)}
    </div>`;
  }

  // -- the data: as a table, and as files --------------------------------------------------------

  #turn(): void {
    this.asTable = !this.asTable;
    this.looked = null; // its point is not in the table
    if (this.asTable) void import("./data_table.js");
  }

  #menu(name: string): unknown {
    const { t } = this;
    const drawing = () => this.querySelector<SVGSVGElement>(".arp-chart-place > svg");
    const saved = (format: string, run: () => Promise<void>): Offer => [`${t("download")} (${format})`, run];
    return exportMenu(
      "download",
      t("download"),
      [
        saved("SVG", async () => {
          const shown = drawing();
          if (shown) saveFile(fileName(name, "svg"), (await saving()).svgText(shown), "image/svg+xml");
        }),
        saved("PNG", async () => {
          const shown = drawing();
          const picture = shown && (await (await saving()).pngOf(shown));
          if (picture) saveFile(fileName(name, "png"), picture);
        }),
        saved("CSV", async () => {
          const { chartTable, toCsv } = await import("@agent-rendering/core/export");
          const { headers, rows } = chartTable(this.component?.props ?? {});
          saveFile(fileName(name, "csv"), `\ufeff${toCsv(headers, rows)}`, "text/csv");
        }),
      ],
      () => void saving(),
    );
  }
}

addStyles(styles);
define("arp-chart", ArpChart);
