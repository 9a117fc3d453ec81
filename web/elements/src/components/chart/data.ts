/** Reads the props of a chart. */

import type { JsonObject } from "@agent-rendering/core";
import { list, number, objects, oneOf, text } from "../../base/values.js";

const KINDS = ["bar", "line", "area", "pie", "scatter"] as const;

/** One series of values. */
export interface Series {
  readonly name: string;
  /** Values by label; `null` is a gap. */
  readonly values: readonly (number | null)[];
  /** Colour from the agent as a CSS colour; empty if there is none or it is invalid. */
  readonly colour: string;
  /** Index of its look (colour, dashes, mark), from 0. */
  readonly look: number;
}

/** Data of a chart with all defaults filled in. */
export interface ChartData {
  readonly kind: (typeof KINDS)[number];
  readonly title: string;
  readonly labels: readonly string[];
  readonly series: readonly Series[];
  /** Labels of a scatter chart as x values; `null` for other charts, and if a label is not a number. */
  readonly places: readonly number[] | null;
  readonly height: number;
  /** Title of the labels, title of the values, and unit of the values; each may be empty. */
  readonly xTitle: string;
  readonly yTitle: string;
  readonly unit: string;
}

/** Return the data of a chart, with defaults for missing or malformed props. */
export function chartData({ type, title, labels, datasets, height, x_title, y_title, unit }: JsonObject): ChartData {
  const kind = oneOf(type, KINDS);
  const given = list(labels);
  const series = objects(datasets).map(({ label, data, color }, look) => ({
    name: text(label),
    values: list(data).map(number),
    colour: colourOf(text(color)),
    look,
  }));
  const length = series.reduce((most, { values }) => Math.max(most, values.length), given.length);
  const places = given.map((label) =>
    typeof label === "string" && label.trim() === "" ? Number.NaN : Number(label ?? Number.NaN),
  );
  const areNumbers = kind === "scatter" && places.length > 0 && places.every(Number.isFinite);
  return {
    kind,
    title: text(title),
    labels: Array.from({ length }, (_, at) => text(given[at])),
    series,
    places: areNumbers ? places : null,
    height: Math.min(900, Math.max(120, number(height) ?? 280)),
    xTitle: text(x_title),
    yTitle: text(y_title),
    unit: text(unit).trim(),
  };
}

/**
 * Return a colour from the agent if it is a plain CSS colour, otherwise the empty text. The check keeps out functions
 * such as `var()`, which read properties of the page.
 */
function colourOf(given: string): string {
  const isPlain =
    /^(?:#[\da-f]{3,8}|[a-z]+|(?:rgb|hsl|hwb|lab|lch|oklab|oklch)a?\([\d\s.,%/+-]*(?:deg|turn|rad)?[\d\s.,%/+-]*\))$/i.test(
      given,
    );
  return isPlain && typeof CSS !== "undefined" && CSS.supports("color", given) ? given : "";
}
