/** Every component in every state, as an agent would send it. */

import type { Component, JsonObject } from "@agent-rendering/core";

/** One state of a component. */
export interface Sample {
  readonly name: string;
  readonly component: Component;
}

let count = 0;

function sample(name: string, type: string, props: JsonObject, more: Partial<Component> = {}): Sample {
  count += 1;
  return { name, component: { id: `s${count}`, type, props, ...more } };
}

/** A picture of four colours. */
export const PICTURE =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAEAAAAAwCAIAAAAuKetIAAAAWElEQVR42u3PMQ0AIRAAMHakIYCJMLCjBz0EDa/jJeCB5LYmNdCU5wj1rxYqCQgICAgICAgICAgICAgICAg8BUo/ob5dQwkICAgICAgICAgICAgICAgIPLk3+FsPL90bJQAAAABJRU5ErkJggg==";

const PROSE = `# Weather in Seattle

The data has **1,461 days** from *2012* to 2015, with \`precipitation\`, temperatures and wind; see the [source](https://vega.github.io/vega-datasets/) or <https://example.org/data>.

## What stands out

- Rain falls on 44 % of the days
  - mostly from October to April
  - hardly ever in July
- [x] Checked for gaps
- [ ] Compared with ~~Portland~~ Vancouver

1. Read the file
2. Count what there is

> Nobody likes rain. \\
> Some like what it grows.

### Code and numbers

\`\`\`python
def mean(values: list[float]) -> float:
    """The average, 0 for none."""
    return sum(values) / len(values) if values else 0.0  # never divides by zero
\`\`\`

| Year | Rain (mm) | Warmest |
| :--- | ---: | :---: |
| 2012 | 1,226 | 34.4 °C |
| 2013 | 828 | 33.9 °C |

Energy is $$E = mc^2$$ and the mean is \\(\\bar x = \\frac{1}{n}\\sum_i x_i\\); it costs $5 and $10.

---

<script>alert(1)</script> stays what it is, and so does [this](javascript:alert(1)).`;

/** More columns than fit, numbers with different places, long texts. */
const WIDE: JsonObject = {
  title: "Orders of the quarter",
  headers: ["Customer", "Region", "What was ordered", "Status", "Pieces", "Price", "Discount", "Total", "Delivered"],
  rows: [
    [
      "Müller Maschinenbau GmbH & Co. KG",
      "Asia-Pacific",
      "Hydraulic press, refurbished, with two days of training on site",
      "paid",
      2.5,
      310.125,
      "0 %",
      775.31,
      "2026-03-12",
    ],
    ["Café Zentral", "Central Europe", "Coffee machine", "shipped", 1, 1249, "12.5 %", 1249, "2026-02-11"],
  ],
};

/** A pie of more parts than there are colours, with long names. */
const PARTS: JsonObject = {
  type: "pie",
  title: "Revenue by source",
  labels: [
    "Enterprise subscriptions (annual, prepaid)",
    "Team plans",
    "Professional services and on-site training",
    "Marketplace commissions",
    "Hardware",
    "Support contracts, 24 × 7",
    "Education and non-profit discounts",
    "Partner resales in Asia-Pacific",
    "Licences from the old price list",
    "Events",
    "API usage above the included quota",
    "Other",
  ],
  datasets: [
    {
      label: "2025",
      data: [412_300, 288_450, 176_020, 143_900, 98_310, 74_200, 61_840, 45_010, 32_750, 21_400, 9_800, 210],
    },
  ],
  x_title: "Source",
  y_title: "Revenue",
  unit: "USD",
};

const CITIES: JsonObject = {
  title: "Cities of Norway",
  headers: ["City", "People", "Share", "Founded", "Capital"],
  rows: [
    ["Oslo", 709_037, "13.1 %", "1049-01-01", true],
    ["Bergen", 291_940, "5.4 %", "1070-01-01", false],
    ["Trondheim", 214_565, "4.0 %", "0997-01-01", false],
    ["Stavanger", 149_048, "2.8 %", "1125-01-01", false],
    ["Drammen", 104_487, null, "1811-06-19", false],
  ],
  highlight: [0],
  sortable: true,
  searchable: true,
};

const BEFORE = `import csv

def read(path):
    rows = []
    with open(path) as file:
        for row in csv.reader(file):
            rows.append(row)
    return rows

def mean(values):
    return sum(values) / len(values)

def main():
    rows = read("weather.csv")
    print(len(rows))
    print(mean([float(row[3]) for row in rows[1:]]))

main()
`;
const AFTER = `import csv
from pathlib import Path

def read(path: Path) -> list[list[str]]:
    with path.open() as file:
        return list(csv.reader(file))

def mean(values):
    return sum(values) / len(values) if values else 0.0

def main():
    rows = read("weather.csv")
    print(len(rows))
    print(mean([float(row[3]) for row in rows[1:]]))

main()
`;

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const RAIN = [143, 118, 131, 92, 61, 52, 16, 23, 54, 109, 161, 139];
const WIND = [31, 33, 36, 34, 30, 28, 27, 26, 26, 28, 31, 34];
const WARM = [8.1, 9.3, 12.1, 14.9, 18.2, 21, 25.1, 25.2, 21.6, 15.6, 10.3, null];

const FIELDS: JsonObject[] = [
  { name: "name", label: "Your name", required: true, placeholder: "Ada Lovelace" },
  { name: "mail", label: "E-mail", field_type: "email", required: true },
  { name: "count", label: "How many", field_type: "number", value: 2, validation: { min: 1, max: 10 } },
  { name: "day", label: "From", field_type: "date", value: "2026-12-01" },
  {
    name: "size",
    label: "Size",
    field_type: "select",
    options: ["small", { label: "Large, with a long name", value: 2 }],
    value: "small",
  },
  { name: "note", label: "Anything else", field_type: "textarea", placeholder: "Optional" },
  { name: "file", label: "A file", field_type: "file" },
  { name: "key", label: "Key", field_type: "password" },
  { name: "terms", label: "I have read the terms", field_type: "checkbox", required: true },
];

const OPTIONS = [
  "Sun",
  { label: "Rain", value: "rain", description: "A lot of it, from October to April", icon: "☂" },
  { label: "Fog", disabled: true, description: "Not this week" },
];

const inner = (id: string, type: string, props: JsonObject): JsonObject => ({ id, type, props });

/** All samples, in the order of the catalog. */
export const SAMPLES: readonly Sample[] = [
  sample("text", "text", {
    content:
      "Plain text keeps its\n    line ends and **stars**, and breaks a long word: " +
      "Donaudampfschifffahrtsgesellschaft".repeat(4),
  }),
  sample("markdown", "markdown", { content: PROSE }),
  sample("status success", "status-card", {
    status: "success",
    title: "Imported",
    message: "1,461 rows are in the table.",
  }),
  sample("status error", "status-card", {
    status: "error",
    title: "Query failed",
    message: "The table is not there.",
    sections: [
      { label: "SQL", content: "SELECT avg(precipitation)\nFROM wether", style: "code" },
      { label: "Reason", content: "no such table: wether", style: "error" },
      { label: "Did you mean", content: "weather", style: "success" },
    ],
  }),
  sample("status warning", "status-card", { status: "warning", title: "3 rows have no date" }),
  sample("status info", "status-card", {
    status: "info",
    title: "The data is from 2015",
    sections: [{ label: "Source", content: "NOAA" }],
  }),
  sample("table", "table", CITIES),
  sample("table wide", "table", WIDE),
  sample("table tabs", "table", {
    headers: [],
    rows: [],
    tabs: [
      {
        name: "North",
        headers: ["City", "°C"],
        rows: [
          ["Tromsø", -3.8],
          ["Bodø", 0.2],
        ],
        highlight: [1],
      },
      { name: "South", headers: ["City", "°C"], rows: [["Oslo", -1.5]] },
    ],
  }),
  sample("table empty", "table", { title: "Nothing found", headers: ["City", "People"], rows: [] }),
  sample("table long", "table", {
    title: "Ten thousand",
    headers: ["#", "Name", "Value"],
    rows: Array.from({ length: 10_000 }, (_, at) => [at + 1, `Row number ${at + 1}`, (at * 7919) % 1000]),
    sortable: true,
  }),
  sample("code", "code-block", {
    title: "answer.py",
    language: "python",
    code: 'from math import sqrt\n\nclass Answer:\n    def __init__(self, value: int = 42):\n        self.value = value  # of course\n\nprint(f"{Answer().value:>8}", sqrt(2))\n',
  }),
  sample("code tabs", "code-block", {
    title: "Hello",
    tabs: [
      {
        name: "hello.js",
        language: "javascript",
        code: 'const greet = (name) => `Hello ${name}`;\nconsole.log(greet("you"));\n',
      },
      { name: "hello.sql", language: "sql", code: "SELECT 'Hello' AS greeting WHERE 1 = 1;\n" },
    ],
  }),
  sample("diff", "diff", {
    title: "Types, and no division by zero",
    before: BEFORE,
    after: AFTER,
    before_label: "weather.py (old)",
    after_label: "weather.py (new)",
    language: "python",
  }),
  sample("diff none", "diff", { before: "same\n", after: "same\n" }),
  sample("key-value", "key-value", {
    title: "seattle_weather",
    items: [
      { key: "Rows", value: 1461 },
      { key: "From", value: "2012-01-01" },
      { key: "Quality", value: "good", style: "success" },
      { key: "Gaps", value: "3 days", style: "warning" },
      { key: "Errors", value: "1 file", style: "error" },
      { key: "Licence", value: "public domain", style: "muted" },
      { key: "A key with rather a long name to it", value: null },
    ],
  }),
  sample("progress", "progress", {
    title: "weather.csv",
    steps: [
      { name: "Read", status: "done" },
      { name: "Check", status: "done", detail: "no gaps" },
      { name: "Import", status: "active", detail: "412 of 1,461" },
      { name: "Index", status: "pending" },
    ],
  }),
  sample("progress failed", "progress", {
    steps: [
      { name: "Read", status: "done" },
      { name: "Import", status: "failed", detail: "row 12 has no date" },
      { name: "Index", status: "pending" },
    ],
  }),
  sample("chart bar", "chart", {
    type: "bar",
    title: "Rain and wind by month",
    labels: MONTHS,
    datasets: [
      { label: "Rain (mm)", data: RAIN },
      { label: "Wind (dm/s)", data: WIND },
    ],
  }),
  sample("chart line", "chart", {
    type: "line",
    title: "Warmest hour",
    labels: MONTHS,
    datasets: [
      { label: "2012", data: WARM },
      { label: "2013", data: WARM.map((value) => (value === null ? 7.5 : value - 1.8)) },
      { label: "2014", data: WARM.map((value, at) => (at === 4 ? null : (value ?? 8) + 1.2)) },
    ],
  }),
  sample("chart area", "chart", {
    type: "area",
    title: "Balance",
    labels: MONTHS,
    datasets: [{ label: "Balance", data: [12, 18, 7, -4, -16, -9, 2, 8, 21, 30, 24, 19] }],
    x_title: "Month",
    y_title: "At its end",
    unit: "€",
    height: 220,
  }),
  sample("chart pie", "chart", PARTS),
  sample("chart scatter", "chart", {
    type: "scatter",
    title: "Rain by wind",
    labels: [1.2, 2, 2.4, 2.9, 3.1, 3.6, 4.2, 4.4, 5, 6.1],
    datasets: [
      { label: "Winter", data: [2, 8, 6, 12, 9, 15, 22, 18, 30, 41] },
      { label: "Summer", data: [0, 1, 0, 2, 4, 3, 2, 6, 8, 12], color: "#b0408f" },
    ],
  }),
  sample("chart empty", "chart", { type: "line", title: "Nothing yet", labels: [], datasets: [], height: 160 }),
  sample("image", "image", {
    src: PICTURE,
    alt: "Four squares",
    width: 240,
    height: 160,
    caption: "Four squares, as an example",
  }),
  sample("image remote", "image", {
    src: "https://pictures.example/map.png",
    alt: "A map of the stations",
    caption: "Stations",
  }),
  sample("image broken", "image", { src: "javascript:alert(1)", alt: "No picture at all" }),
  sample("products", "product-cards", {
    title: "For rainy days",
    cards: [
      {
        name: "Umbrella",
        price: 19.9,
        brand: "Nimbus",
        badge: "New",
        description: "Opens by itself, closes when asked.",
        image: PICTURE,
        url: "https://shop.example/umbrella",
      },
      { name: "Rubber boots", price: "from 34 €", brand: "Puddle", image: "https://shop.example/boots.jpg" },
      { name: "Tea", description: "For the way home" },
    ],
  }),
  sample("form", "form", {
    title: "Order",
    description: "We write when it is on its way.",
    fields: FIELDS,
    submit_label: "Order",
  }),
  sample("form answered", "form", {
    title: "Order",
    fields: FIELDS,
    state: "answered",
    answer: {
      name: "Ada",
      mail: "ada@example.org",
      count: 2,
      day: "2026-12-01",
      size: 2,
      note: null,
      key: null,
      terms: true,
      file: { id: "f", name: "plan.pdf", size: 3, mime: "application/pdf" },
    },
  }),
  sample("confirm", "confirm", { title: "Import the file?", message: "weather.csv, 1,461 rows" }),
  sample("confirm destructive", "confirm", {
    title: "Delete the table?",
    message: "1,461 rows; this cannot be undone.",
    confirm_label: "Delete",
    deny_label: "Keep",
    destructive: true,
  }),
  sample("confirm answered", "confirm", {
    title: "Delete the table?",
    confirm_label: "Delete",
    deny_label: "Keep",
    destructive: true,
    state: "answered",
    answer: false,
  }),
  sample("confirm expired", "confirm", { title: "Still there?", state: "expired" }),
  sample("choices", "choices", { title: "Which weather?", options: OPTIONS }),
  sample("choices list", "choices", { title: "Which weather?", options: OPTIONS, style: "list" }),
  sample("choices cards", "choices", { title: "Which weather?", options: OPTIONS, style: "cards" }),
  sample("choices several", "choices", {
    title: "Which columns?",
    options: ["date", "precipitation", "wind", "weather"],
    multi_select: true,
  }),
  sample("choices answered", "choices", {
    title: "Which columns?",
    options: ["date", "precipitation", "wind"],
    multi_select: true,
    state: "answered",
    answer: ["date", "wind"],
  }),
  sample("text-input", "text-input", { label: "A name for the export", placeholder: "hot-days", max_length: 40 }),
  sample("text-input multiline", "text-input", { label: "What is it about?", multiline: true, submit_label: "Save" }),
  sample("text-input answered", "text-input", {
    label: "A name for the export",
    state: "answered",
    answer: "rainy-days",
  }),
  sample("group", "group", {
    direction: "horizontal",
    children: [
      inner("g1", "key-value", { title: "Rain", items: [{ key: "Days", value: 641 }] }),
      inner("g2", "key-value", { title: "Sun", items: [{ key: "Days", value: 640 }] }),
    ],
  }),
  sample("tabs", "tabs", {
    tabs: [
      { label: "Numbers", icon: "table", component: inner("t1", "table", { headers: ["n"], rows: [[1], [2]] }) },
      { label: "Words", icon: "✎", component: inner("t2", "text", { content: "one, two" }) },
    ],
  }),
  sample("split", "split", {
    ratio: "1:2",
    left: inner("l1", "text", { content: "The smaller part" }),
    right: inner("r1", "status-card", { status: "info", title: "The larger part" }),
  }),
  sample("unknown", "x-acme-map", { lat: 47.6, lon: -122.3 }),
  sample(
    "unknown with fallback",
    "x-acme-map",
    { lat: 47.6 },
    { fallback: { id: "f1", type: "text", props: { content: "47.6 N, 122.3 W" } } },
  ),
  sample("sources", "x-arp-sources", {
    sources: [
      {
        title: "Weather in Seattle",
        url: "https://vega.github.io/vega-datasets/",
        excerpt: "Rain falls on 44 % of the days, mostly from October to April.",
      },
      { title: "A table of the user's" },
    ],
  }),
];
