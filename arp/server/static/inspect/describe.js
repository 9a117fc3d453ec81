/** What one fact says in a line, and how good or bad it is; pure. */

import { controlsVisible, printed } from "./printed.js";
import { brief, bytes } from "./words.js";

/** Types that say that something went wrong. */
export const PROBLEMS = [
  "turn.failed",
  "runtime.error",
  "model.failed",
  "tool.failed",
  "process.failed",
  "process.terminated",
  "sandbox.violation",
  "hook.failed",
  "permission.evaluated",
  "permission.resolved",
  "context.compaction.failed",
  "routing.not_possible",
  "rate_limit.hit",
  "quota.low",
  "quota.blocked",
  "task.failed",
  "task.lost",
  "task.timed_out",
  "task.attempt.failed",
  "subagent.failed",
  "job.failed",
  "job.item.failed",
  "benchmark.trial.failed",
  "evidence.changed",
  "runtime.warning",
];

const WARNINGS = new Set([
  "quota.low",
  "rate_limit.hit",
  "runtime.warning",
  "process.terminated",
  "task.retrying",
  "task.cancelled",
  "task.blocked",
  "output.truncated",
  "output.expired",
  "snapshot.repaired",
  "routing.fallback.applied",
  "action.required",
  "permission.requested",
]);

const GOOD = /\.(completed|result)$/;

/** Types of which neighbours are shown as one row. */
export const JOINED = new Set(["model.delta", "reasoning.delta"]);

/** `bad`, `warn`, `good` or `plain`. */
export function tone(fact) {
  const { type, payload = {} } = fact;
  if (type.startsWith("permission.")) return permissionTone(type, payload);
  if (type === "turn.failed") return fact.statusReason === "cancelled" ? "warn" : "bad";
  if (type === "evidence.changed")
    return payload.verification?.outcome === "failed" || payload.state === "missing_correlation"
      ? "bad"
      : "plain";
  if (type === "process.completed") return payload.exitCode ? "bad" : "good";
  if (WARNINGS.has(type)) return "warn";
  if (PROBLEMS.includes(type)) return "bad";
  return GOOD.test(type) ? "good" : "plain";
}

function permissionTone(type, payload) {
  if (payload.decision === "deny") return "bad";
  if (payload.decision === "allow") return "good";
  return type === "permission.requested" || payload.decision === "ask" ? "warn" : "plain";
}

/** Whether a fact belongs under "problems". */
export function isProblem(fact) {
  return PROBLEMS.includes(fact.type) && ["bad", "warn"].includes(tone(fact));
}

/** The part of a type before its first dot. */
export function family(type) {
  return type.split(".", 1)[0];
}

const LINES = {
  "session.updated": (fact) => [
    fact.payload.viewer && `${fact.payload.viewer} looked at it`,
    ...generic(fact),
  ],
  "turn.submitted": ({ payload }) => input(payload.input),
  "turn.completed": ({ payload }) => [usage(payload.usage)],
  "turn.failed": ({ statusReason, payload }) => [statusReason, usage(payload.usage)],
  "model.delta": ({ payload }) => [payload.text],
  "model.completed": ({ payload }) => [payload.model, payload.finishReason, usage(payload.usage)],
  "tool.args": ({ payload }) => [payload.tool, payload.args],
  "tool.result": ({ payload }) => [payload.tool, output(payload.preview)],
  "tool.failed": ({ payload }) => [payload.tool, output(payload.error)],
  "process.started": ({ payload }) => [command(payload.command)],
  "process.output": ({ payload }) => [payload.stream, output(payload.preview)],
  "process.completed": ({ payload }) => [`exit code ${payload.exitCode}`, took(payload)],
  "output.spilled": ({ payload }) => [bytes(payload.bytes), output(payload.preview)],
  "output.truncated": ({ payload }) => [
    `${bytes(payload.keptBytes)} of ${bytes(payload.bytes)} kept`,
    payload.reason,
  ],
  "output.redacted": ({ payload }) =>
    (payload.findings ?? []).map(({ rule, count }) => `${rule} ×${count}`),
  "action.required": ({ payload }) => [payload.component?.type, asks(payload.component)],
  "action.resolved": ({ payload }) => [payload.decision, payload.answer],
  "artifact.changed": ({ artifactId, payload }) => [
    payload.name ?? payload.surface ?? artifactId,
    ...(payload.changes ?? []).flatMap(change),
  ],
  "cost.recorded": ({ payload }) => [
    payload.model,
    payload.amount != null && `${payload.amount} ${payload.currency}`,
    payload.inputTokens != null && `${payload.inputTokens} tokens read`,
    payload.outputTokens != null && `${payload.outputTokens} tokens written`,
  ],
  "queue.changed": ({ payload }) => [payload.queued?.length ? payload.queued : "nobody waits"],
};

/** Fields that tell what happened, in the order in which they are shown. */
const FIELDS =
  "tool model failedModel hook sandbox operation target limit quota policy to decision deniedBy decidedBy waitingFor attempt objective title text message error code reason signal state kind gaps verification command fraction done total remaining unit resetsAt retryAfterS reward value readModel throughSequence source candidates queued dependsOn profile amount currency workflow epoch name features encoding".split(
    " ",
  );

/** What a fact says, on one line; empty if its type says all. */
export function line(fact) {
  const said = LINES[fact.type]?.(fact) ?? generic(fact);
  return said
    .flat()
    .filter((part) => part != null && part !== false && part !== "")
    .map((part) => brief(part, 240))
    .join(" · ");
}

/** What a program printed, as a terminal shows it; the payload below keeps every character. */
function output(value) {
  return typeof value === "string" ? controlsVisible(printed(value)) : value;
}

function generic({ status, statusReason, payload = {} }) {
  return [status, statusReason, ...FIELDS.map((name) => told(name, payload[name]))];
}

function told(name, value) {
  if (value == null) return null;
  if (name === "deniedBy" || name === "decidedBy") return `by ${value.kind} ${value.name}`;
  if (name === "command") return command(value);
  if (typeof value === "string") return name === "error" || name === "message" ? output(value) : value;
  if (Array.isArray(value) && value.every((one) => typeof one === "string"))
    return value.join(", ");
  return `${name} ${brief(value, 120)}`;
}

function input(said = {}) {
  const data = said.data ?? {};
  const text = data.text ?? (Object.keys(data).length ? data : null);
  return said.input_type === "text" ? [text] : [said.input_type, text];
}

/** A command as a shell would show it. */
export function command(value) {
  return Array.isArray(value) ? value.join(" ") : (value ?? "");
}

function asks(component) {
  const props = component?.props ?? {};
  return props.title ?? props.label ?? props.message ?? props.content ?? null;
}

function change({ render, patch = [] }) {
  if (render) return `shows ${render.map((component) => component.type).join(", ")}`;
  return patch.map(({ op, target, id }) => [op, target ?? id].filter(Boolean).join(" "));
}

function usage(used) {
  return used && Object.keys(used).length ? brief(used, 120) : null;
}

function took({ durationMs }) {
  return durationMs == null ? null : `${Math.round(durationMs)} ms`;
}
