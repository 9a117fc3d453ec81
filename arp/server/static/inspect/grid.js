/** Tables, lists of terms and JSON, as elements; every text is a text node. */

import { el } from "./dom.js";
import { brief } from "./words.js";

/** JSON that is longer is cut, with a button for the rest. */
const MOST_JSON = 20_000;

/**
 * A table with a heading.
 * @param columns [title, (row) => string | Node | null, class?][]; a column in which no row has
 *   anything is left out.
 */
export function table(title, columns, rows, note = "") {
  if (!rows?.length) return null;
  const cells = rows.map((row) => columns.map(([, give]) => give(row)));
  const used = columns.map((_, index) => cells.some((row) => !isEmpty(row[index])));
  const pick = (items) => items.filter((_, index) => used[index]);
  const kinds = pick(columns).map(([, , kind]) => kind ?? null);
  return el(
    "section",
    { class: "card" },
    heading(title, rows.length, note),
    el(
      "div",
      { class: "scrolls", tabindex: "0", role: "region", "aria-label": title },
      el(
        "table",
        {},
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            pick(columns).map(([name], index) =>
              el("th", { scope: "col", class: kinds[index] === "number" ? "number" : null }, name),
            ),
          ),
        ),
        el(
          "tbody",
          {},
          cells.map((row) =>
            el(
              "tr",
              {},
              pick(row).map((cell, index) =>
                el("td", { class: kinds[index] }, isEmpty(cell) ? "" : cell),
              ),
            ),
          ),
        ),
      ),
    ),
  );
}

function isEmpty(cell) {
  return cell == null || cell === "" || cell === false;
}

function heading(title, count, note) {
  return el(
    "h3",
    {},
    title,
    count ? el("span", { class: "count" }, String(count)) : null,
    note ? el("span", { class: "note" }, note) : null,
  );
}

/** A heading over terms and what they are; null if there are none. */
export function terms(title, entries) {
  const told = entries.filter(([, value]) => !isEmpty(value));
  if (!told.length) return null;
  return el(
    "section",
    { class: "card" },
    heading(title, 0, ""),
    el(
      "dl",
      {},
      told.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]),
    ),
  );
}

/** A word that says how something stands, in its colour. */
export function badge(word) {
  return word
    ? el("span", { class: `badge ${toneOf(word)}` }, String(word).replaceAll("_", " "))
    : null;
}

/** What went wrong, as a text that looks like it. */
export function failure(text) {
  return el("span", { class: "failure" }, brief(text, 400));
}

const TONES = {
  good: "completed exported delivered allow passed promote answered",
  bad: "failed lost timed_out deny denied unsupported missing_correlation interrupted stale revert",
  warn: "cancelled cancelling queued blocked waiting waiting_input waiting_permission waiting_resource paused retrying ask pending expired terminated low hold spilled",
  busy: "running accepted preparing",
};

/** The colour of a status. */
export function toneOf(word) {
  const found = Object.entries(TONES).find(([, words]) => words.split(" ").includes(word));
  return found?.[0] ?? "plain";
}

/** A button that leads to a fact. */
export function link(seq, go) {
  if (!seq) return null;
  return el(
    "button",
    {
      type: "button",
      class: "seq",
      "data-key": `seq-${seq}`,
      "aria-label": `Show fact ${seq}`,
      onclick: () => go(seq),
    },
    `#${seq}`,
  );
}

const TOKENS =
  /("(?:[^"\\]|\\.)*"(?=\s*:))|("(?:[^"\\]|\\.)*")|(-?\d[\d.eE+-]*)|\b(true|false|null)\b/g;

/** JSON as text, in colours. */
export function json(value) {
  const text = JSON.stringify(value, null, 2) ?? "";
  const block = el("pre", { class: "json", tabindex: "0", "aria-label": "JSON" });
  if (text.length <= MOST_JSON) {
    block.append(...tokens(text));
    return block;
  }
  const rest = el(
    "button",
    {
      type: "button",
      onclick: () => block.replaceChildren(document.createTextNode(text)),
    },
    `Show all ${text.length.toLocaleString("en")} characters`,
  );
  block.append(document.createTextNode(`${text.slice(0, MOST_JSON)}…\n`), rest);
  return block;
}

function* tokens(text) {
  let place = 0;
  for (const match of text.matchAll(TOKENS)) {
    if (match.index > place) yield document.createTextNode(text.slice(place, match.index));
    const kind = match[1] ? "key" : match[2] ? "string" : match[3] ? "number" : "word";
    yield el("span", { class: kind }, match[0]);
    place = match.index + match[0].length;
  }
  yield document.createTextNode(text.slice(place));
}
