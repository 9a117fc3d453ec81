/** Series over labels, to see, to read and to hear. */

import type { JsonObject } from "@agent-rendering/core";
import { html, nothing, svg, type PropertyDeclarations, type PropertyValues } from "lit";
import { chartData, type ChartData, type Series } from "../chart/data.js";
import { pie, slicesOf, type Slice } from "../chart/pie.js";
import { colourStyle, plot, type Plot } from "../chart/plot.js";
import { pngOf, svgText } from "../chart/save.js";
import { DASHES, markPath } from "../chart/shapes.js";
import { fileName, saveFile } from "../clipboard.js";
import { ComponentElement, define } from "../element.js";
import { exportMenu, type Offer } from "../export_menu.js";
import { iconButton } from "../toolbar.js";
import { freshId } from "../values.js";
import { styled } from "../styled.js";
import { addStyles } from "../style/sheet.js";
import styles from "../style/chart.css?inline";

const NAMES = { line: "chartLine", bar: "chartBar", pie: "chartPie", scatter: "chartScatter", area: "chartArea" } as const;
const GUESSED_WIDTH_PX = 640;
const NARROWEST_PX = 220;

/** What is looked at: a label, and which of the series shown. */
interface Looked {
  readonly at: number;
  readonly series: number;
}

/** `<arp-chart>`: arrow keys go from point to point; its data can be had as a table. */
export class ArpChart extends ComponentElement {
  static override properties: PropertyDeclarations = {
    width: { state: true },
    dropped: { state: true },
    looked: { state: true },
    asTable: { state: true },
    spoken: { state: true },
  };

  /** Of the drawing; 0 before it is known: a drawing of another width would be laid out for nothing. */
  declare width: number;
  /** Numbers of series that are left out; of a pie, of labels. */
  declare dropped: ReadonlySet<number>;
  declare looked: Looked | null;
  declare asTable: boolean;
  declare spoken: string;
  readonly #id = freshId("chart");
  #observer: ResizeObserver | null = null;
  #data: ChartData = chartData({});
  #plot: Plot | null = null;
  #slices: Slice[] = [];

  constructor() {
    super();
    Object.assign(this, { width: 0, dropped: new Set(), looked: null, asTable: false, spoken: "" });
  }

  override connectedCallback(): void {
    super.connectedCallback();
    if (typeof ResizeObserver === "undefined") return;
    this.#observer = new ResizeObserver(() => this.#fit());
    this.#observer.observe(this);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#observer?.disconnect();
  }

  #fit(): void {
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

  protected override draw(_props: JsonObject): unknown {
    const { t, width } = this;
    const { kind, title, height, series } = this.#data;
    const isPie = kind === "pie";
    this.#plot = isPie || width === 0 ? null : plot(this.#data, this.#shown, width, t);
    this.#slices = isPie ? slicesOf(this.#data, this.dropped) : [];
    const name = title || t(NAMES[kind]);
    const isEmpty = !series.some(({ values }) => values.some((value) => value !== null));
    return html`<figure class="arp-card arp-chart" aria-labelledby=${this.#id}>
      <header>
        <figcaption class="arp-title" id=${this.#id} dir="auto">${name}</figcaption>
        <span class="arp-tools">
          ${iconButton(this.asTable ? "chart" : "table", t(this.asTable ? "showChart" : "showData"), () => (this.asTable = !this.asTable))}
          ${this.#menu(name)}
        </span>
      </header>
      ${this.asTable ? this.#table(name) : html`${this.#legend()}
      <div
        class="arp-chart-place" dir="ltr" tabindex="0" role="application" aria-roledescription=${t(NAMES[kind])} aria-label=${this.#summary(name)}
        @keydown=${this.#key} @pointermove=${this.#point} @pointerdown=${this.#point} @pointerleave=${this.#leave} @blur=${this.#leave}
      >
        <svg viewBox="0 0 ${width} ${height}" width=${width} height=${height} aria-hidden="true" focusable="false">
          ${isPie && width > 0 ? pie(this.#slices, this.#data, width, t) : this.#plot?.drawing}${this.#cross()}
        </svg>
        ${isEmpty ? html`<p class="arp-note arp-chart-empty">${t("noData")}</p>` : nothing}
        ${this.#tip()}
      </div>
      <p class="arp-hidden" role="status">${this.spoken}</p>`}
    </figure>`;
  }

  /** What the chart says, in words. */
  #summary(name: string): string {
    const { t } = this;
    const { kind, labels } = this.#data;
    const ranges = this.#shown.map(({ name: series, values }) => {
      const there = values.filter((value) => value !== null);
      if (there.length === 0) return series;
      const least = there.reduce((one, other) => Math.min(one, other));
      const most = there.reduce((one, other) => Math.max(one, other));
      return t("chartRange", { series: series || name, least: t.number(least), most: t.number(most) });
    });
    return [name, t(NAMES[kind]), t("points", { count: labels.length }), ...ranges].join(". ");
  }

  // -- legend ------------------------------------------------------------------------------------

  #legend(): unknown {
    const { kind, series, labels } = this.#data;
    const isPie = kind === "pie";
    const items = isPie ? labels.map((label, at) => [label, at] as const) : series.map(({ name }, at) => [name, at] as const);
    if (items.length === 0 || (items.length === 1 && items[0]?.[0] === "")) return nothing;
    if (items.length === 1 && !isPie) return html`<div class="arp-legend"><span class="arp-legend-item">${this.#swatch(0)}<span dir="auto">${items[0]?.[0]}</span></span></div>`;
    return html`<div class="arp-legend">${items.slice(0, 40).map(([name, at]) => html`<button
      type="button" class="arp-legend-item" aria-pressed=${String(!this.dropped.has(at))} @click=${() => this.#toggle(at)}
    >${this.#swatch(at)}<span dir="auto">${name || this.t.number(at + 1)}</span></button>`)}</div>`;
  }

  #swatch(at: number): unknown {
    const { kind, series } = this.#data;
    const one = series[at];
    const style = kind === "pie" || one === undefined ? styled({}) : colourStyle(one);
    const isFilled = kind === "bar" || kind === "pie";
    return html`<svg class="arp-swatch arp-series" viewBox="0 0 22 12" data-look=${at % 8} ${style} aria-hidden="true">${isFilled
      ? svg`<rect x="5" width="12" height="12" rx="3"></rect>`
      : svg`${kind === "scatter" ? nothing : svg`<path class="arp-line-path" d="M0,6H22" stroke-dasharray=${DASHES[at % DASHES.length] || nothing}></path>`}<path class="arp-mark" transform="translate(11 6)" d=${markPath(at, 3.5)}></path>`}</svg>`;
  }

  #toggle(at: number): void {
    const hidden = new Set(this.dropped);
    if (!hidden.delete(at)) hidden.add(at);
    this.dropped = hidden;
    this.looked = null;
  }

  // -- looking at points -------------------------------------------------------------------------

  readonly #leave = (): void => {
    this.looked = null;
  };

  readonly #point = (event: PointerEvent): void => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    if (this.#plot !== null) {
      const { columns, points } = this.#plot;
      const at = nearest(columns, x);
      const apart = points.map((series) => Math.abs((series[at]?.[1] ?? Infinity) - y));
      this.looked = at < 0 ? null : { at, series: Math.max(0, apart.indexOf(Math.min(...apart))) };
      return;
    }
    const { height } = this.#data;
    const path = (event.target as Element).closest(".arp-slice");
    const at = path ? [...(path.parentElement as Element).children].indexOf(path) : -1;
    this.looked = at < 0 || height === 0 ? null : { at, series: 0 };
  };

  readonly #key = (event: KeyboardEvent): void => {
    const count = this.#plot ? this.#plot.columns.length : this.#slices.length;
    const sets = this.#plot ? this.#shown.length : 1;
    if (count === 0 || sets === 0) return;
    const { at, series } = this.looked ?? { at: -1, series: 0 };
    const moved = {
      ArrowRight: [Math.min(count - 1, at + 1), series],
      ArrowLeft: [Math.max(0, at - 1), series],
      ArrowDown: [Math.max(0, at), (series + 1) % sets],
      ArrowUp: [Math.max(0, at), (series - 1 + sets) % sets],
      Home: [0, series],
      End: [count - 1, series],
    }[event.key];
    if (event.key === "Escape" && this.looked !== null) {
      event.stopPropagation();
      this.looked = null;
    }
    if (moved === undefined) return;
    event.preventDefault();
    this.looked = { at: moved[0] as number, series: moved[1] as number };
    this.spoken = this.#told(this.looked);
  };

  /** A point in words. */
  #told({ at, series }: Looked): string {
    const { t } = this;
    const { labels } = this.#data;
    if (this.#plot === null) {
      const slice = this.#slices[at];
      return slice ? `${labels[slice.label]}: ${t.number(slice.value)} (${t.number(slice.part, { style: "percent", maximumFractionDigits: 1 })})` : "";
    }
    const one = this.#shown[series];
    const value = one?.values[at];
    return [labels[at], `${one?.name ? `${one.name}: ` : ""}${value == null ? t("noData") : t.number(value)}`].filter(Boolean).join(", ");
  }

  #cross(): unknown {
    const { looked } = this;
    if (looked === null || this.#plot === null) return nothing;
    const { columns, points, top, bottom } = this.#plot;
    const x = columns[looked.at];
    if (x === undefined || !Number.isFinite(x)) return nothing;
    const rings = points.map((series, at) => {
      const point = series[looked.at];
      const one = this.#shown[at];
      if (!point || !one || (this.#data.kind === "scatter" && at !== looked.series)) return nothing;
      return svg`<circle class="arp-series arp-looked" data-look=${one.look % 8} ${colourStyle(one)} cx=${point[0]} cy=${point[1]} r=${at === looked.series ? 6 : 4.5}></circle>`;
    });
    return svg`<g class="arp-cross"><line x1=${x} x2=${x} y1=${top} y2=${bottom}></line>${this.#data.kind === "bar" ? nothing : rings}</g>`;
  }

  #tip(): unknown {
    const { looked, t, width } = this;
    if (looked === null) return nothing;
    const { labels, kind, height } = this.#data;
    const slice = this.#slices[looked.at];
    const x = this.#plot ? (this.#plot.columns[looked.at] ?? 0) : width / 2 + (slice?.middle[0] ?? 0);
    const y = this.#plot ? 0 : height / 2 + (slice?.middle[1] ?? 0);
    const side = x > width / 2 ? { right: `${width - x + 14}px` } : { left: `${x + 14}px` };
    const rows = this.#plot
      ? this.#shown.flatMap((one, at) => (kind === "scatter" && at !== looked.series ? [] : [[one.look, one.name, one.values[looked.at]] as const]))
      : slice ? [[slice.label, t.number(slice.part, { style: "percent", maximumFractionDigits: 1 }), slice.value] as const] : [];
    const label = labels[this.#plot ? looked.at : (slice?.label ?? 0)];
    return html`<div class="arp-tip" aria-hidden="true" ${styled({ ...side, top: `${Math.max(4, y - 20)}px` })}>
      ${label ? html`<strong dir="auto">${label}</strong>` : nothing}
      ${rows.slice(0, 12).map(([look, name, value]) => html`<span class="arp-tip-row">${this.#swatch(look)}<span dir="auto">${name}</span><b>${value == null ? "–" : t.number(value)}</b></span>`)}
    </div>`;
  }

  // -- its data ----------------------------------------------------------------------------------

  #table(name: string): unknown {
    const { t } = this;
    const { labels, series } = this.#data;
    const most = 500;
    return html`<div class="arp-scroll arp-chart-table" tabindex="0" role="group" aria-label=${name}><table>
      <thead><tr><td></td>${series.map((one, at) => html`<th scope="col" dir="auto" class="arp-right">${one.name || t.number(at + 1)}</th>`)}</tr></thead>
      <tbody>${labels.slice(0, most).map((label, at) => html`<tr><th scope="row" dir="auto">${label || t.number(at + 1)}</th>${series.map(({ values }) => html`<td class="arp-right">${values[at] == null ? "–" : t.number(values[at])}</td>`)}</tr>`)}</tbody>
    </table>${labels.length > most ? html`<p class="arp-note">${t("rows", { count: labels.length })}: ${t("download")} (CSV)</p>` : nothing}</div>`;
  }

  #menu(name: string): unknown {
    const { t } = this;
    const drawing = () => this.querySelector<SVGSVGElement>(".arp-chart-place > svg");
    const saved = (format: string, run: () => Promise<void>): Offer => [`${t("download")} (${format})`, run];
    return exportMenu("download", t("download"), [
      saved("SVG", async () => {
        const shown = drawing();
        if (shown) saveFile(fileName(name, "svg"), svgText(shown), "image/svg+xml");
      }),
      saved("PNG", async () => {
        const shown = drawing();
        const picture = shown && (await pngOf(shown));
        if (picture) saveFile(fileName(name, "png"), picture);
      }),
      saved("CSV", async () => {
        const { chartTable, toCsv } = await import("@agent-rendering/core/export");
        const { headers, rows } = chartTable(this.component?.props ?? {});
        saveFile(fileName(name, "csv"), `\ufeff${toCsv(headers, rows)}`, "text/csv");
      }),
    ]);
  }
}

/** Which of some places is nearest; -1 if there is none. */
function nearest(places: readonly number[], x: number): number {
  let best = -1;
  places.forEach((place, at) => {
    if (Number.isFinite(place) && (best < 0 || Math.abs(place - x) < Math.abs((places[best] as number) - x))) best = at;
  });
  return best;
}

addStyles(styles);
define("arp-chart", ArpChart);
