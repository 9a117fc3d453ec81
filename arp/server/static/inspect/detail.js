/** One row of the timeline, whole: its ids, its payload, what else belongs to it. */

import { el } from "./dom.js";
import { badge, json } from "./grid.js";
import { family, tone } from "./describe.js";
import { controlsVisible, printed } from "./printed.js";
import { brief, day } from "./words.js";

/** Fields that are told above the ids, or below them. */
const SHOWN = new Set(["sequence", "type", "timestamp", "payload", "status", "statusReason"]);
const OF_EVERY_FACT = new Set(["schemaVersion", "runtimeId", "sessionId", "eventId"]);
/** Ids by which the timeline can be narrowed to what belongs together. */
const JOINING = new Set([
  "turnId",
  "toolCallId",
  "actionId",
  "taskId",
  "runId",
  "processId",
  "requestId",
  "jobId",
  "modelRequestId",
  "subagentId",
  "artifactId",
  "channelId",
  "evidenceId",
  "outputRef",
]);

/** Texts in a payload that are read better as they are than in JSON. */
const TEXTS = ["text", "error", "preview", "args", "message", "reason"];
/** Those that a program may have printed. */
const PRINTED = new Set(["error", "preview", "message"]);
const MOST_TEXT = 20_000;

/**
 * Draws a row.
 * @param on narrow(name, id), close(), copy(text, what).
 */
export function detail(row, on) {
  const fact = row.first;
  return [
    el(
      "header",
      {},
      el(
        "h2",
        { tabindex: "-1" },
        el("span", { class: `dot ${tone(fact)}` }),
        el("b", {}, family(fact.type)),
        fact.type.slice(family(fact.type).length),
      ),
      el(
        "button",
        {
          type: "button",
          class: "icon",
          "aria-label": "Close",
          title: "Close (Esc)",
          onclick: on.close,
        },
        "✕",
      ),
    ),
    el(
      "p",
      { class: "where" },
      el(
        "span",
        {},
        row.facts.length === 1 ? `#${row.seq}` : `#${row.seq} to #${row.last.sequence}`,
      ),
      el("time", { datetime: fact.timestamp, title: fact.timestamp }, day(fact.timestamp)),
      badge(fact.status),
      fact.statusReason && fact.statusReason !== fact.status ? badge(fact.statusReason) : null,
    ),
    el(
      "p",
      { class: "actions" },
      el(
        "button",
        { type: "button", onclick: () => on.copy(location.href, "the link") },
        "Copy link",
      ),
      el(
        "button",
        {
          type: "button",
          onclick: () =>
            on.copy(JSON.stringify(row.facts.length === 1 ? fact : row.facts, null, 2), "the JSON"),
        },
        "Copy JSON",
      ),
    ),
    ids(fact, on),
    ...texts(row),
    el("h3", {}, row.facts.length === 1 ? "Payload" : "Payload of the first"),
    json(fact.payload),
    el(
      "details",
      {},
      el("summary", {}, "In every fact"),
      el(
        "dl",
        {},
        [...OF_EVERY_FACT].flatMap((name) => [el("dt", {}, name), el("dd", {}, brief(fact[name]))]),
      ),
    ),
  ];
}

function ids(fact, on) {
  const names = Object.keys(fact).filter((name) => !SHOWN.has(name) && !OF_EVERY_FACT.has(name));
  if (!names.length) return null;
  return el(
    "dl",
    { class: "ids" },
    names.flatMap((name) => [el("dt", {}, name), el("dd", {}, id(name, fact[name], on))]),
  );
}

function id(name, value, on) {
  if (!JOINING.has(name) || typeof value !== "string") return brief(value, 2000);
  return el(
    "button",
    {
      type: "button",
      class: "narrow",
      title: `Show only what belongs to ${value}`,
      onclick: () => on.narrow(name, value),
    },
    value,
  );
}

function texts(row) {
  const payload = row.first.payload ?? {};
  const shown = row.facts.length > 1 ? ["text"] : TEXTS.filter((name) => isLong(payload[name]));
  return shown.flatMap((name) => {
    const text = row.facts.map((fact) => fact.payload?.[name] ?? "").join("");
    const read = PRINTED.has(name) ? controlsVisible(printed(text)) : text;
    return [
      el("h3", {}, name),
      el("pre", { class: "text", tabindex: "0" }, read.slice(0, MOST_TEXT)),
    ];
  });
}

function isLong(value) {
  return typeof value === "string" && (value.length > 60 || value.includes("\n"));
}
