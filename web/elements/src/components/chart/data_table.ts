/** `<arp-chart-data>`: a chart's data as rows, to read; loaded when somebody asks for it. */

import type { JsonObject } from "@agent-rendering/core";
import { chartTable } from "@agent-rendering/core/export";
import { html, nothing, type TemplateResult } from "lit";
import type { Translate } from "../../base/context.js";
import { ArpElement, define } from "../../base/element.js";
import "../../style/content.js";
import type { ChartData } from "./data.js";

/** More rows are in the file that is saved. */
const MOST_ROWS = 500;

export class ArpChartData extends ArpElement {
  static override properties = {
    props: { attribute: false },
    data: { attribute: false },
    name: { attribute: false },
    t: { attribute: false },
  };

  /** Of the chart. */
  declare props: JsonObject;
  declare data: ChartData;
  /** Of the table, for screen readers. */
  declare name: string;
  declare t: Translate;

  protected override render(): TemplateResult {
    return dataTable(this.props, this.data, this.name, this.t);
  }
}

/** The data under the headers that it has elsewhere too: what its axes say, and the unit. */
function dataTable(props: JsonObject, { labels, series }: ChartData, name: string, t: Translate): TemplateResult {
  // All numbers of a column to the same place, so that they are under each other.
  const formats = series.map(({ values }) => ({
    minimumFractionDigits: values.reduce(
      (places: number, value) => Math.max(places, value === null ? 0 : decimals(value)),
      0,
    ),
  }));
  const [first, ...heads] = chartTable({ ...props, type: "line" }).headers; // of points too the first column needs no name
  return html`<div class="arp-scroll arp-chart-table" tabindex="0" role="group" aria-label=${name}><table>
    <thead><tr>${first ? html`<th scope="col" dir="auto">${first}</th>` : html`<td></td>`}${heads.map((head) => html`<th scope="col" dir="auto" class="arp-right">${head}</th>`)}</tr></thead>
    <tbody>${labels.slice(0, MOST_ROWS).map((label, at) => html`<tr><th scope="row" dir="auto">${label || t.number(at + 1)}</th>${series.map(({ values }, column) => html`<td class="arp-right">${values[at] == null ? "–" : t.number(values[at], formats[column])}</td>`)}</tr>`)}</tbody>
  </table>${labels.length > MOST_ROWS ? html`<p class="arp-note">${t("rows", { count: labels.length })}: ${t("download")} (CSV)</p>` : nothing}</div>`;
}

/** How many places after the point a number is shown with: three at most. */
function decimals(value: number): number {
  return [0, 1, 2].find((places) => Number(value.toFixed(places)) === Number(value.toFixed(3))) ?? 3;
}

define("arp-chart-data", ArpChartData);
