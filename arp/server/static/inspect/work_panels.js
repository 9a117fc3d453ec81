/** Panels of what was done: problems, turns, tools, processes, tasks, subagents and jobs. */

import { badge, failure, link, table } from "./grid.js";
import { command } from "./describe.js";
import { by } from "./story.js";
import { between, brief, bytes, clock, count, money, older, span } from "./words.js";

export function lines(title, entries, go) {
  return table(
    title,
    [
      ["Fact", (one) => link(one.lastSequence, go)],
      ["Time", (one) => clock(one.at), "mono"],
      ["Type", (one) => one.type, "mono"],
      ["What", (one) => brief(one.message, 600), "wide"],
      ["By", (one) => by(one.by)],
      [
        "Where",
        (one) => [one.turnId, one.toolCallId, one.taskId, one.processId].filter(Boolean).join(" "),
        "mono",
      ],
    ],
    [...(entries ?? [])].reverse(),
  );
}

export function turns(thread, go) {
  const wait = (turn) => between(turn.submittedAt, turn.startedAt);
  const first = (turn) => between(turn.startedAt, turn.firstOutputAt);
  const rows = [...(thread.turns ?? [])].reverse();
  return table(
    `Turns of ${thread.threadId}`,
    [
      ["Fact", (turn) => link(turn.firstSequence, go)],
      ["Turn", (turn) => turn.turnId, "mono"],
      ["Status", (turn) => badge(turn.status)],
      ["Input", (turn) => brief(turn.input ?? turn.inputType, 200), "wide"],
      ["Began", (turn) => clock(turn.submittedAt), "mono"],
      ["Waited", (turn) => span(wait(turn)), "number"],
      ["First text", (turn) => span(first(turn)), "number"],
      ["Took", (turn) => span(between(turn.startedAt, turn.endedAt)), "number"],
      ["Tools", (turn) => (turn.toolCalls ? count(turn.toolCalls) : ""), "number"],
      [
        "Characters",
        (turn) => (turn.outputCharacters ? count(turn.outputCharacters) : ""),
        "number",
      ],
      ["Model", (turn) => turn.model],
      ["Cost", (turn) => money(turn.cost?.amounts), "number"],
      [
        "Error",
        (turn) => brief(turn.error ?? (turn.status === "completed" ? "" : turn.statusReason), 300),
        "wide",
      ],
    ],
    rows,
    older(thread.history?.olderTurns),
  );
}

export function queue(thread) {
  return table(
    "In line",
    [
      ["Place", (one) => String(one.position), "number"],
      ["Turn", (one) => one.turnId, "mono"],
      ["Since", (one) => clock(one.submittedAt), "mono"],
      ["Input", (one) => brief(one.input, 200), "wide"],
    ],
    thread.queuedTurns,
  );
}

export function calls(thread, go) {
  return table(
    "Tool calls",
    [
      ["Fact", (call) => link(call.firstSequence, go)],
      ["Tool", (call) => call.tool, "mono"],
      ["Status", (call) => badge(call.status)],
      ["Turn", (call) => call.turnId, "mono"],
      ["Began", (call) => clock(call.startedAt), "mono"],
      ["Took", (call) => span(between(call.startedAt, call.endedAt)), "number"],
      ["Arguments", (call) => brief(call.args, 200), "wide mono"],
      ["Result", (call) => (call.error ? failure(call.error) : brief(call.preview, 200)), "wide"],
    ],
    [...(thread.toolCalls ?? [])].reverse(),
  );
}

export function processes(thread, go) {
  return table(
    "Processes",
    [
      ["Fact", (one) => link(one.firstSequence, go)],
      ["Command", (one) => brief(command(one.command), 200), "wide mono"],
      ["Status", (one) => badge(one.status)],
      ["Exit", (one) => one.exitCode?.toString() ?? one.signal, "number"],
      ["Took", (one) => span(between(one.startedAt, one.endedAt)), "number"],
      ["Output", (one) => bytes(one.outputBytes), "number"],
      ["Reason", (one) => brief(one.reason, 200), "wide"],
      ["Call", (one) => one.toolCallId, "mono"],
    ],
    [...(thread.processes ?? [])].reverse(),
  );
}

export function outputs(thread, go) {
  return table(
    "Large outputs",
    [
      ["Fact", (one) => link(one.firstSequence, go)],
      ["Status", (one) => badge(one.status)],
      ["Size", (one) => bytes(one.bytes), "number"],
      ["Begins", (one) => brief(one.preview, 200), "wide mono"],
      ["Call", (one) => one.toolCallId ?? one.processId, "mono"],
      ["Kept as", (one) => one.outputRef, "mono"],
    ],
    [...(thread.outputs ?? [])].reverse(),
  );
}

export function tasks(snapshot, go) {
  return table(
    "Tasks",
    [
      ["Fact", (task) => link(task.firstSequence, go)],
      ["Task", (task) => task.taskId, "mono"],
      ["Status", (task) => badge(task.status)],
      ["Objective", (task) => brief(task.objective, 200), "wide"],
      ["Progress", (task) => progress(task.progress)],
      [
        "Attempts",
        (task) => String((task.attempts?.length ?? 0) + (task.olderAttempts ?? 0)),
        "number",
      ],
      ["After", (task) => task.edges?.dependsOn?.join(", "), "mono"],
      ["Part of", (task) => task.edges?.parentTaskId, "mono"],
      ["Why", (task) => brief(task.statusReason, 300), "wide"],
    ],
    [...(snapshot.tasks ?? [])].reverse(),
    older(snapshot.taskSummary?.older),
  );
}

function progress(told) {
  if (!told) return "";
  const part = told.fraction != null ? `${Math.round(told.fraction * 100)} %` : "";
  const of =
    told.done != null ? `${told.done}${told.total != null ? ` of ${told.total}` : ""}` : "";
  return [part || of, told.message].filter(Boolean).join(" · ");
}

export function attempts(snapshot, go) {
  const rows = (snapshot.tasks ?? []).flatMap((task) =>
    (task.attempts ?? []).map((attempt) => ({ ...attempt, taskId: task.taskId })),
  );
  return table(
    "Attempts",
    [
      ["Fact", (one) => link(one.firstSequence, go)],
      ["Task", (one) => one.taskId, "mono"],
      ["Attempt", (one) => one.attempt?.toString(), "number"],
      ["Run", (one) => one.runId, "mono"],
      ["Status", (one) => badge(one.status)],
      ["Took", (one) => span(between(one.startedAt, one.endedAt)), "number"],
      ["Turn", (one) => one.turnId, "mono"],
      ["Reason", (one) => brief(one.reason, 300), "wide"],
    ],
    rows.reverse(),
  );
}

export function work(snapshot, go) {
  return [
    table(
      "Subagents",
      [
        ["Fact", (one) => link(one.firstSequence, go)],
        ["Subagent", (one) => one.name ?? one.subagentId, "mono"],
        ["Status", (one) => badge(one.status)],
        ["Objective", (one) => brief(one.objective, 200), "wide"],
        ["Reason", (one) => brief(one.reason, 200), "wide"],
      ],
      snapshot.subagents,
    ),
    ...(snapshot.jobs ?? []).map((job) =>
      table(
        `Job ${job.name ?? job.jobId}`,
        [
          ["Fact", (one) => link(one.firstSequence, go)],
          ["Item", (one) => one.jobItemId, "mono"],
          ["Status", (one) => badge(one.status)],
          ["Attempt", (one) => one.attempt?.toString(), "number"],
          ["Reason", (one) => brief(one.reason, 300), "wide"],
        ],
        job.items,
        job.status ?? "",
      ),
    ),
  ];
}
