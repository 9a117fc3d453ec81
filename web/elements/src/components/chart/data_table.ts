/** `<arp-chart-data>`: the data of a chart as a table. It is loaded when the user asks for it. */

import type { JsonObject } from "@agent-rendering/core";
import { chartTable } from "@agent-rendering/core/export";
import { html, nothing, type TemplateResult } from "lit";
import type { Translate } from "../../base/context.js";
import { ArpElement, define } from "../../base/element.js";
import "../../style/content.js";
import type { ChartData } from "./data.js";

/** Most rows that are shown; a saved file has all of them. */
const MOST_ROWS = 500;

/** The table of a chart's data. */
export class ArpChartData extends ArpElement {
  static override properties = {
    props: { attribute: false },
    data: { attribute: false },
    name: { attribute: false },
    t: { attribute: false },
  };

  /** Props of the chart. */
  declare props: JsonObject;
  declare data: ChartData;
  /** Name of the table for screen readers. */
  declare name: string;
  declare t: Translate;

  protected override render(): TemplateResult {
    return dataTable(this.props, this.data, this.name, this.t);
  }
}

/** Return the table. Its headers are those of an exported chart: axis titles, series and unit. */
function dataTable(props: JsonObject, { labels, series }: ChartData, name: string, t: Translate): TemplateResult {
  // The numbers of a column get the same number of decimals, so that their decimal points are aligned.
  const formats = series.map(({ values }) => ({
    minimumFractionDigits: values.reduce(
      (places: number, value) => Math.max(places, value === null ? 0 : decimals(value)),
      0,
    ),
  }));
  const [first, ...heads] = chartTable({ ...props, type: "line" }).headers; // as `line`: otherwise a scatter chart's first column would get a generic name
  return html`<div class="arp-scroll arp-chart-table" tabindex="0" role="group" aria-label=${name}><table>
    <thead><tr>${first ? html`<th scope="col" dir="auto">${first}</th>` : html`<td></td>`}${heads.map((head) => html`<th scope="col" dir="auto" class="arp-right">${head}</th>`)}</tr></thead>
    <tbody>${labels.slice(0, MOST_ROWS).map((label, at) => html`<tr><th scope="row" dir="auto">${label || t.number(at + 1)}</th>${series.map(({ values }, column) => html`<td class="arp-right">${values[at] == null ? "–" : t.number(values[at], formats[column])}</td>`)}</tr>`)}</tbody>
  </table>${labels.length > MOST_ROWS ? html`<p class="arp-note">${t("rows", { count: labels.length })}: ${t("download")} (CSV)</p>` : nothing}</div>`;
}

/** Return the number of decimals that a number needs, at most three. */
function decimals(value: number): number {
  return [0, 1, 2].find((places) => Number(value.toFixed(places)) === Number(value.toFixed(3))) ?? 3;
}

define("arp-chart-data", ArpChartData);
