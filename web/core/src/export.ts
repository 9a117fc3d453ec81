/**
 * Export of a conversation as Markdown or JSON, and of tables as CSV, TSV or Markdown. Separate entry
 * (`@agent-rendering/core/export`), so that it is loaded on demand.
 */

import { parseJson } from "./protocol/exact_json.js";
import type { Component, Json, JsonObject } from "./protocol/generated/wire.js";
import { isObject } from "./protocol/is_object.js";
import { AUTHOR } from "./chat/drawn.js";
import { isTextPart, type TurnState } from "./protocol/screen.js";
import { controlsVisible, printed } from "./printed.js";

export type Cell = string | number | boolean | null;

/** A conversation as a JSON file. */
export interface Exported {
  /** Name of the format; its version is 1. */
  readonly format: "arp-chat";
  readonly version: 1;
  readonly title: string;
  readonly turns: readonly TurnState[];
}

/** Texts of an export, in the language of the reader. */
export interface ExportWords {
  readonly you: string;
  readonly agent: string;
  readonly tool: string;
  readonly error: string;
  /** Heading of a tool's result; "Result" if absent. */
  readonly result?: string;
}

const WORDS = { you: "You", agent: "Agent", tool: "Tool", error: "Error", result: "Result" };

// -- whole conversations ---------------------------------------------------------------------------

/** Return a conversation as JSON; `fromJson` reads it. */
export function toJson(turns: readonly TurnState[], title = ""): string {
  const exported: Exported = { format: "arp-chat", version: 1, title, turns };
  return JSON.stringify(exported, null, 2);
}

/**
 * Read the output of `toJson`.
 *
 * @throws TypeError The text is not such an output; the message says why.
 */
export function fromJson(text: string): Exported {
  let read: unknown;
  try {
    read = parseJson(text);
  } catch {
    throw new TypeError("arp: this is not JSON");
  }
  const isOurs = isObject(read) && read.format === "arp-chat" && read.version === 1;
  if (!isOurs || !Array.isArray((read as JsonObject).turns)) {
    throw new TypeError("arp: this is no exported chat of version 1");
  }
  const exported = read as unknown as Exported;
  return { ...exported, turns: exported.turns.map(checkedTurn) };
}

/** Return a turn with all fields, whatever is missing in the file. */
function checkedTurn(turn: Partial<TurnState> | null): TurnState {
  const list = <T>(value: readonly T[] | undefined): readonly T[] => (Array.isArray(value) ? value : []);
  return {
    id: String(turn?.id ?? ""),
    status: turn?.status ?? null,
    position: null,
    inputs: list(turn?.inputs).filter(isObject),
    output: list(turn?.output).filter(isShown),
    tools: list(turn?.tools).filter(isObject),
    thinking: typeof turn?.thinking === "string" ? turn.thinking : "",
    errors: list(turn?.errors).filter(isObject),
    marks: list(turn?.marks).filter(isObject),
    permissions: [], // a file must not show permission requests
    usage: turn?.usage ?? null,
    final: true,
    ...(typeof turn?.at === "string" && { at: turn.at }),
  };
}

function isShown(value: unknown): value is Component {
  return isObject(value) && typeof value.id === "string" && typeof value.type === "string" && isObject(value.props);
}

/** Return a conversation as Markdown. */
export function toMarkdown(turns: readonly TurnState[], title = "", given: ExportWords = WORDS): string {
  const words = { ...WORDS, ...given };
  const blocks = title === "" ? [] : [`# ${line(title)}`];
  for (const turn of turns) {
    const texts = turn.inputs.flatMap(({ data }) => (typeof data.text === "string" ? [data.text] : []));
    if (texts.length > 0) blocks.push(`## ${line(turn.inputs[0]?.origin ?? words.you)}`, ...texts);
    blocks.push(`## ${words.agent}`);
    for (const { tool, args, ok, result } of turn.tools) {
      blocks.push(`> ${words.tool}: ${line(tool)}${ok === false ? ` (${words.error})` : ""} ${code(args)}`);
      if (result) blocks.push(`> ${words.result}:\n>\n${fenced(readable(result)).replace(/^/gm, "> ")}`);
    }
    for (const item of turn.output) {
      blocks.push(isTextPart(item, turn.id) ? String(item.props.content) : componentToMarkdown(item));
    }
    for (const { error } of turn.errors) blocks.push(`> ${words.error}: ${line(readable(error))}`);
  }
  return `${blocks.filter((block) => block.trim() !== "").join("\n\n")}\n`;
}

// -- components ------------------------------------------------------------------------------------

/** Return the whole content of a component as Markdown, whatever its props. */
export function componentToMarkdown({ type, props, fallback }: Component): string {
  const made = MARKDOWN.get(type)?.(props);
  if (made === undefined)
    return fallback ? componentToMarkdown(fallback) : fenced(JSON.stringify(props, null, 2), "json");
  const title = text(props.title);
  return title === "" ? made : `**${line(title)}**\n\n${made}`.trim();
}

const MARKDOWN = new Map<string, (props: JsonObject) => string>([
  [AUTHOR, ({ name }) => `### ${line(text(name))}`],
  ["text", ({ content }) => text(content)],
  ["markdown", ({ content }) => text(content)],
  [
    "status-card",
    ({ status, message, sections }) =>
      join(
        `(${text(status)})`,
        text(message),
        ...objects(sections).map(({ label, content }) => `**${line(text(label))}:** ${text(content)}`),
      ),
  ],
  [
    "table",
    (props) => {
      const selected = props.answer == null ? [] : [props.answer].flat();
      const written = selected.map((at) => text(list(list(props.rows)[Number(at)])[0]) || `#${Number(at) + 1}`);
      return join(
        ...tables(props).map(({ name, headers, rows }) =>
          join(name && `**${line(name)}**`, toMarkdownTable(headers, rows)),
        ),
        answered("", written.join(", ") || null),
      );
    },
  ],
  [
    "code-block",
    (props) =>
      typeof props.code === "string"
        ? fenced(readable(props.code), text(props.language))
        : objects(props.tabs)
            .map((tab) => join(`**${line(text(tab.name))}**`, fenced(readable(text(tab.code)), text(tab.language))))
            .join("\n\n"),
  ],
  [
    "diff",
    ({ before, after, before_label, after_label }) =>
      join(text(before_label), fenced(text(before)), text(after_label), fenced(text(after))),
  ],
  [
    "key-value",
    ({ items }) =>
      objects(items)
        .map(({ key, value }) => `- **${line(text(key))}:** ${line(text(value))}`)
        .join("\n"),
  ],
  [
    "progress",
    ({ steps }) =>
      objects(steps)
        .map(
          ({ name, status, detail }) =>
            `- [${status === "done" ? "x" : " "}] ${line(join(text(name), text(detail)))} (${text(status)})`,
        )
        .join("\n"),
  ],
  [
    "chart",
    (props) => {
      const { headers, rows } = chartTable(props);
      return toMarkdownTable(headers, rows);
    },
  ],
  ["image", ({ src, alt, caption }) => join(`![${line(text(alt))}](<${text(src)}>)`, text(caption))],
  [
    "product-cards",
    ({ cards }) =>
      objects(cards)
        .map(({ name, price, brand, description, badge, url }) => {
          const head = typeof url === "string" ? `[${line(text(name))}](<${url}>)` : line(text(name));
          return `- ${[head, ...[price, brand, badge, description].map(text)].filter(Boolean).map(line).join(", ")}`;
        })
        .join("\n"),
  ],
  [
    "form",
    ({ fields, answer }) =>
      objects(fields)
        .map(({ name, label }) => answered(text(label) || text(name), isObject(answer) ? answer[text(name)] : answer))
        .join("\n"),
  ],
  ["confirm", ({ message, answer }) => join(text(message), answered("", answer))],
  [
    "choices",
    ({ options, answer }) =>
      join(
        list(options)
          .map((option) => `- ${line(text(isObject(option) ? option.label : option))}`)
          .join("\n"),
        answered("", answer),
      ),
  ],
  ["text-input", ({ label, answer }) => answered(text(label), answer)],
  ["group", ({ children }) => nested(list(children))],
  [
    "tabs",
    ({ tabs }) =>
      objects(tabs)
        .map(({ label, component }) => join(`**${line(text(label))}**`, nested([component])))
        .join("\n\n"),
  ],
  ["split", ({ left, right }) => nested([left, right])],
]);

function nested(children: readonly (Json | undefined)[]): string {
  const shown: unknown[] = [...children];
  return shown.filter(isShown).map(componentToMarkdown).join("\n\n");
}

function answered(label: string, answer: Json | undefined): string {
  const written = answer == null ? "" : line(typeof answer === "object" ? JSON.stringify(answer) : text(answer));
  return label === "" ? written && `→ ${written}` : `- **${line(label)}:** ${written}`;
}

// -- tables ----------------------------------------------------------------------------------------

export interface TableData {
  readonly name: string;
  readonly headers: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
}

/** Return the tables of a `table` component: its tabs, or the component itself. */
export function tables(props: JsonObject): TableData[] {
  const tabs = objects(props.tabs);
  return (tabs.length > 0 ? tabs : [props]).map(({ name, headers, rows }) => ({
    name: text(name),
    headers: list(headers).map(text),
    rows: list(rows).map((row) => list(row).map(cell)),
  }));
}

/** Return a chart's data as a table, the same as the agent side sends to renderers without charts. */
export function chartTable(props: JsonObject): TableData {
  const [sets, labels] = [objects(props.datasets), list(props.labels)];
  const count = sets.reduce((most, { data }) => Math.max(most, list(data).length), labels.length);
  return {
    name: text(props.title),
    headers: chartHeaders(props),
    rows: Array.from({ length: count }, (_, at) => [
      cell(labels[at] ?? ""),
      ...sets.map(({ data }) => cell(list(data)[at])),
    ]),
  };
}

/** Return the title of the x axis, then for each dataset y axis, label and unit, such as `Sales: 2025 (USD)`. */
function chartHeaders({ type, datasets, x_title, y_title, unit }: JsonObject): string[] {
  const [sets, values, end] = [objects(datasets), text(y_title), text(unit) && `(${text(unit)})`];
  const named = sets.map(({ label }, at) => {
    const own = text(label) || (values !== "" && sets.length === 1 ? "" : `#${at + 1}`);
    const name = [...new Set([values, own].filter(Boolean))].join(": ");
    return name.endsWith(end) ? name : `${name} ${end}`;
  });
  return [text(x_title) || (type === "scatter" ? "x" : ""), ...named];
}

/**
 * Return a table as CSV (RFC 4180). A text that a spreadsheet would read as a formula, also after a tab or a line
 * break, gets a leading apostrophe; numbers stay numbers. Spreadsheets in locales with a decimal comma split lines at
 * semicolons, so texts with semicolons are quoted too.
 */
export function toCsv(headers: readonly string[], rows: readonly (readonly Cell[])[]): string {
  return separated([headers, ...rows], ",", (value) =>
    /[",;\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value,
  );
}

/** Return a table as tab-separated text, which can be pasted into a spreadsheet. */
export function toTsv(headers: readonly string[], rows: readonly (readonly Cell[])[]): string {
  return separated([headers, ...rows], "\t", (value) =>
    /["\t\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value,
  );
}

function separated(rows: readonly (readonly Cell[])[], mark: string, quoted: (value: string) => string): string {
  const written = (value: Cell) =>
    quoted(typeof value === "string" && /^[=+\-@\t\r\n]/.test(value) ? `'${value}` : text(value));
  return rows.map((row) => `${row.map(written).join(mark)}\r\n`).join("");
}

/** Return a table as Markdown; short rows are filled with empty cells. */
export function toMarkdownTable(headers: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const width = rows.reduce((most, row) => Math.max(most, row.length), headers.length);
  if (width === 0) return "";
  const written = (row: readonly Cell[]) =>
    `| ${Array.from({ length: width }, (_, at) => line(text(row[at])).replace(/[\\|]/g, "\\$&")).join(" | ")} |`;
  return [written(headers), `|${" --- |".repeat(width)}`, ...rows.map(written)].join("\n");
}

// -- values of any type, because agents may send anything ------------------------------------------

function text(value: Json | undefined): string {
  if (value == null) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function cell(value: Json | undefined): Cell {
  return typeof value === "object" ? (value === null ? null : JSON.stringify(value)) : (value ?? null);
}

function list(value: Json | undefined): Json[] {
  return Array.isArray(value) ? value : [];
}

function objects(value: Json | undefined): JsonObject[] {
  return list(value).filter(isObject);
}

/** Return a text on one line. */
function line(value: string): string {
  return value.replace(/\s+/g, " ").trim();
}

function join(...parts: string[]): string {
  return parts.filter((part) => part !== "").join("\n\n");
}

/** Return the output of a program without control characters. */
function readable(output: string): string {
  return controlsVisible(printed(output));
}

/** Return a text as inline code, between more backticks than it contains in a row. */
function code(value: string): string {
  return value === "" ? "" : `${marks(value, 1)} ${line(value)} ${marks(value, 1)}`;
}

function fenced(value: string, language = ""): string {
  const fence = marks(value, 3);
  return `${fence}${line(language)}\n${value}${value.endsWith("\n") ? "" : "\n"}${fence}`;
}

function marks(value: string, least: number): string {
  const longest = Math.max(0, ...(value.match(/`+/g) ?? []).map(({ length }) => length));
  return "`".repeat(Math.max(least, longest + 1));
}
