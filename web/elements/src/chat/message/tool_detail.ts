/**
 * `<arp-tool-detail>`: the arguments and the result of a tool call, formatted for readers. Loaded with the first tool
 * call. None of it is trusted: it is drawn as text, with deceptive characters made visible.
 */

import { parseJson, type Json, type JsonObject, type ToolRun } from "@agent-rendering/core";
import { printed } from "@agent-rendering/core/printed";
import { html, nothing, type TemplateResult } from "lit";

import "../../code/code.js";
import { createContext, type ArpContext } from "../../base/context.js";
import { ArpElement, define } from "../../base/element.js";
import { leadsAway, linkTarget } from "../../base/url.js";
import { isObject, text, visible } from "../../base/values.js";
import "./message_styles.js";
import { codeLanguage } from "./tool_code.js";

const BARE = createContext();
/** Objects with more entries are shown as JSON, because a row for each would block the page. */
const MOST_ENTRIES = 60;
/** Lists of objects with more columns are shown as JSON, because such a table is unreadable. */
const MOST_COLUMNS = 8;
/** Longer texts are shown below their name, in a box that scrolls. */
const LONGEST_LINE = 500;
/** Depth down to which nested objects are laid out to show code. */
const DEEPEST = 4;
/** Deeper JSON is shown without formatting, because its indents alone would fill the memory. */
const DEEPEST_JSON = 100;

export class ArpToolDetail extends ArpElement {
  static override properties = { run: { attribute: false }, context: { attribute: false } };

  declare run: ToolRun | undefined;
  declare context: ArpContext;

  constructor() {
    super();
    this.context = BARE;
  }

  protected override render(): unknown {
    const { run, context } = this;
    if (run === undefined) return nothing;
    const { t } = context;
    const drawn = new Drawing(run.tool, context, false);
    const output = new Drawing(run.tool, context, true);
    const args = drawn.given(run.args, t("toolArguments"));
    const result = run.result == null ? nothing : output.given(run.result, t("toolResult"));
    const whole =
      run.resultRef == null ? null : linkTarget(`${context.client?.address.base ?? ""}${run.resultRef}`, context);
    return html`${args === nothing ? nothing : html`<p class="arp-caption">${t("toolArguments")}</p>${args}`}
      ${result === nothing ? nothing : html`<p class="arp-caption">${t("toolResult")}</p>${result}`}
      ${whole === null ? nothing : html`<p><a class="arp-link" href=${whole.href} download target=${leadsAway(whole) ? "_blank" : nothing} rel="noopener noreferrer">${t("wholeResult")}</a></p>`}`;
  }
}

/** Formats the arguments or the result of one tool call. */
class Drawing {
  readonly #tool: string;
  readonly #context: ArpContext;
  /** Whether it is output, whose control codes are applied as in a terminal. Arguments are shown as they are. */
  readonly #isOutput: boolean;

  constructor(tool: string, context: ArpContext, isOutput: boolean) {
    this.#tool = tool;
    this.#context = context;
    this.#isOutput = isOutput;
  }

  /** Return arguments or a result: formatted JSON, or other text as it is; nothing if it is empty. */
  given(given: string, label: string): unknown {
    const content = text(given);
    let value: Json;
    try {
      value = parseJson(content) as Json;
    } catch {
      return content.trim() === "" ? nothing : this.#plain(content, label, "auto");
    }
    if (isDeeper(value, DEEPEST_JSON)) return this.#plain(content, label, "ltr");
    if (value === null || (typeof value === "object" && Object.keys(value).length === 0)) return nothing;
    if (typeof value !== "object") return this.#plain(typeof value === "string" ? value : content, label, "auto");
    if (Array.isArray(value)) return this.#rowsOf(value) ?? this.#json(value, label);
    return isSmall(value) ? this.#entries(value, 0) : this.#json(value, label);
  }

  #entries(given: JsonObject | readonly Json[], depth: number): TemplateResult {
    const entries = Object.entries(given);
    const siblings = isObject(given) ? given : {};
    return html`<dl class="arp-values">${entries.map(([name, value]) => this.#entry(name, value, siblings, depth))}</dl>`;
  }

  #entry(name: string, value: Json, siblings: JsonObject, depth: number): TemplateResult {
    const label = visible(name);
    if (typeof value === "string") {
      const content = this.#shown(value);
      const language = codeLanguage(name, content, siblings, this.#tool);
      if (language === null && content.length > LONGEST_LINE)
        return row(label, this.#plain(content, label, "auto"), "block");
      if (language === null)
        return row(label, html`<span class="arp-plain" dir="auto">${content === "" ? '""' : content}</span>`);
      return row(
        label,
        html`<arp-code .code=${content} .language=${language} .heading=${label} .context=${this.#context}></arp-code>`,
        "code",
      );
    }
    if (typeof value !== "object" || value === null || Object.keys(value).length === 0)
      return row(label, html`<code dir="ltr">${JSON.stringify(value)}</code>`);
    const isLaidOut = depth < DEEPEST && isSmall(value) && holdsLines(value);
    return row(label, isLaidOut ? this.#entries(value, depth + 1) : this.#json(value, label), "block");
  }

  /** Return a list of flat objects as a table; `null` for any other list. */
  #rowsOf(list: readonly Json[]): TemplateResult | null {
    const rows = list.filter(isObject);
    const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
    const isTable =
      rows.length === list.length && rows.length <= MOST_ENTRIES && names.length > 0 && names.length <= MOST_COLUMNS;
    if (
      !isTable ||
      rows.some((row) =>
        Object.values(row).some((value) => (typeof value === "object" && value !== null) || holdsLines(value)),
      )
    )
      return null;
    return html`<div class="arp-values-scroll" tabindex="0" role="group" aria-label=${names.map(visible).join(", ")}><table class="arp-values-table">
      <thead><tr>${names.map((name) => html`<th scope="col" dir="auto">${visible(name)}</th>`)}</tr></thead>
      <tbody>${rows.map((row) => html`<tr>${names.map((name) => html`<td dir="auto" ?data-number=${typeof row[name] === "number"}>${this.#shown(text(row[name]))}</td>`)}</tr>`)}</tbody>
    </table></div>`;
  }

  #shown(content: string): string {
    return visible(this.#isOutput ? printed(content) : content.replace(/\r\n?/g, "\n"));
  }

  #json(value: Json, label: string): TemplateResult {
    const read = (_name: string, inner: Json) => (this.#isOutput && typeof inner === "string" ? printed(inner) : inner);
    return this.#plain(JSON.stringify(value, read, 2), label, "ltr");
  }

  #plain(content: string, label: string, direction: "ltr" | "auto"): TemplateResult {
    return html`<pre dir=${direction} tabindex="0" role="group" aria-label=${label}>${this.#shown(content)}</pre>`;
  }
}

/** Return whether lists and objects are nested in more than `levels` levels. */
function isDeeper(value: Json, levels: number): boolean {
  return (
    typeof value === "object" &&
    value !== null &&
    (levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1)))
  );
}

/** Return a name with its value beside it (`line`), below it (`block`), or as `code`, which shows the name itself. */
function row(label: string, shown: TemplateResult, kind: "line" | "block" | "code" = "line"): TemplateResult {
  return html`<div data-kind=${kind}>
    <dt class=${kind === "code" ? "arp-hidden" : ""}><code dir="auto">${label}</code></dt>
    <dd>${shown}</dd>
  </div>`;
}

function isSmall(value: JsonObject | readonly Json[]): boolean {
  return Object.keys(value).length <= MOST_ENTRIES;
}

/** Return whether a value contains a text of several lines. JSON would put such a text on one line. */
function holdsLines(value: Json): boolean {
  if (typeof value === "string") return value.includes("\n");
  return typeof value === "object" && value !== null && Object.values(value).some(holdsLines);
}

define("arp-tool-detail", ArpToolDetail);
