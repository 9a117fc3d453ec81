/** Panels of what is kept: exports, artifacts, benchmarks, and the state of the read models. */

import { el } from "./dom.js";
import { badge, json, link, table, terms } from "./grid.js";
import { mainThread } from "./story.js";
import { brief, bytes, count, day, span } from "./words.js";

/** The lists of an evidence summary that hold exports, by kind. */
const EXPORTS = ["packs", "replays", "reviews", "benchmarks", "others"];

export function evidence(snapshot, go) {
  const summary = snapshot.evidenceSummary ?? {};
  const gaps = summary.knownGaps ?? [];
  const exports = EXPORTS.flatMap((kind) => summary[kind] ?? []);
  return [
    table(
      "Exports",
      [
        ["Fact", (one) => link(one.lastSequence, go)],
        ["Kind", (one) => one.kind],
        ["State", (one) => badge(one.state)],
        ["Time", (one) => day(one.at)],
        ["Covers up to", (one) => (one.throughSequence ? `#${one.throughSequence}` : ""), "number"],
        ["Checked", (one) => badge(one.verification?.outcome)],
        ["First bad", (one) => link(one.verification?.firstBad, go)],
        ["Why", (one) => brief(one.reason, 300), "wide"],
        ["Id", (one) => one.evidenceId, "mono"],
        ["SHA-256", (one) => one.sha256, "mono cut"],
      ],
      exports.sort((one, other) => other.lastSequence - one.lastSequence),
    ),
    table(
      "Known gaps",
      [
        ["Gap", (one) => one.gap, "wide"],
        ["Of", (one) => one.evidenceId, "mono"],
      ],
      gaps,
    ),
    table(
      "Artifacts",
      [
        ["Fact", (one) => link(one.lastSequence, go)],
        ["Artifact", (one) => one.name ?? one.artifactId, "mono"],
        ["Changes", (one) => count(one.changes), "number"],
        ["Size", (one) => bytes(one.bytes), "number"],
        ["Type", (one) => one.mime],
        ["SHA-256", (one) => one.sha256, "mono cut"],
      ],
      [...(snapshot.artifacts ?? [])].reverse(),
    ),
    benchmark(snapshot.benchmarkSummary ?? {}, go),
  ];
}

function benchmark(told, go) {
  return table(
    "Benchmark trials",
    [
      ["Fact", (one) => link(one.firstSequence, go)],
      ["Trial", (one) => one.trialId, "mono"],
      ["Status", (one) => badge(one.status)],
      ["Role", (one) => one.role],
      ["Task", (one) => one.taskId, "mono"],
      ["Reward", (one) => one.reward?.toString(), "number"],
      ["Trajectory", (one) => one.refs?.trajectoryRef, "mono"],
    ],
    told.trials,
    told.meanReward == null ? "" : `mean reward ${told.meanReward}`,
  );
}

const TIMES = {
  queueWait: "Wait in line",
  firstOutput: "To the first text",
  turn: "Turn",
  tool: "Tool call",
  requestWait: "Wait for an answer",
};

export function state(snapshot, go) {
  const told = snapshot.telemetrySummary ?? {};
  const thread = mainThread(snapshot);
  return [
    terms("Session", [
      ["Id", snapshot.sessionId],
      ["Title", snapshot.title],
      ["Agent", snapshot.workflow],
      ["Owner", snapshot.owner],
      ["Created", day(snapshot.createdAt)],
      ["Updated", day(snapshot.updatedAt)],
      ["Facts", count(snapshot.sequence)],
      ["Epoch", snapshot.recoveryCursor?.epoch],
      ["Secrets taken out", told.secretsRedacted ? count(told.secretsRedacted) : ""],
      ["Traces", told.traceIds?.join(", ")],
    ]),
    table(
      "How long it takes",
      [
        ["What", ([name]) => TIMES[name] ?? name],
        ["Times", ([, one]) => count(one.count), "number"],
        ["On average", ([, one]) => span((one.totalMs ?? 0) / one.count), "number"],
        ["Longest", ([, one]) => span(one.maxMs ?? 0), "number"],
      ],
      Object.entries(told.times ?? {}),
    ),
    table(
      "Renderers",
      [
        ["Fact", (one) => link(one.lastSequence, go)],
        ["Channel", (one) => one.channelId, "mono"],
        ["Status", (one) => one.status],
        ["Encoding", (one) => one.encoding],
        ["Why", (one) => brief(one.reason, 200), "wide"],
      ],
      snapshot.channels,
    ),
    el(
      "section",
      { class: "card" },
      el("h3", {}, "Thread, as the read model has it"),
      json(thread),
    ),
  ];
}
