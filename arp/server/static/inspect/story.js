/** What is happening now, and why did it fail? Told from a session's snapshot; pure. */

import { between, brief, span } from "./words.js";

const WORDS = {
  idle: ["plain", "Idle"],
  queued: ["warn", "Queued"],
  running: ["busy", "Running"],
  blocked: ["warn", "Waiting"],
  completed: ["good", "Completed"],
  failed: ["bad", "Failed"],
  cancelled: ["warn", "Cancelled"],
  stale: ["bad", "Stale"],
  unknown: ["plain", "Unknown"],
};

const MOST_REASONS = 5;

/** The thread that was heard of last. */
export function mainThread(snapshot) {
  const threads = snapshot?.threads ?? [];
  const newest = (thread) => thread.turns?.at(-1)?.lastSequence ?? 0;
  return threads.reduce((best, one) => (best && newest(best) >= newest(one) ? best : one), null);
}

/**
 * Tells where a session stands.
 * @returns {{tone, status, headline, lines: {tone, text, seq}[], pending: object[]}} `lines` are what
 *   goes on, or what went wrong, oldest first.
 */
export function tell(snapshot, now) {
  const thread = mainThread(snapshot);
  const [tone, status] = WORDS[thread?.status] ?? WORDS.unknown;
  const pending = thread?.pendingRequests ?? [];
  const active = thread?.turns?.find((turn) => turn.turnId === thread.activeTurnId);
  const told = active ? running(thread, active, now) : over(thread);
  return { tone, status, pending, thread, ...told };
}

function running(thread, turn, now) {
  const since = between(turn.startedAt ?? turn.submittedAt, now);
  const lines = [
    ...mine(thread.toolCalls, turn).map((call) => ({
      tone: "busy",
      text: `Calls ${call.tool ?? "a tool"}${call.progress ? `: ${brief(call.progress, 160)}` : ""}`,
      seq: call.firstSequence,
      since: call.startedAt,
    })),
    ...mine(thread.processes, turn).map((process) => ({
      tone: "busy",
      text: `Runs ${brief([process.command].flat().join(" "), 160)}`,
      seq: process.firstSequence,
      since: process.startedAt,
    })),
    ...quota(turn),
    ...reasons(thread, turn.turnId),
  ];
  const waits = thread.pendingRequests.length ? "waits for an answer" : doing(turn, lines);
  return {
    turn,
    headline: `Turn ${turn.turnId} ${waits}${Number.isFinite(since) ? `, ${span(since)} so far` : ""}`,
    lines,
  };
}

function doing(turn, lines) {
  if (turn.status === "cancelling") return "is being cancelled";
  if (lines.some((line) => line.tone === "busy")) return "works with tools";
  return turn.firstOutputAt ? "is answering" : "has said nothing yet";
}

function quota(turn) {
  const name = turn.blockedByQuota;
  return name
    ? [{ tone: "bad", text: `Stopped by the quota ${name}`, seq: turn.lastSequence }]
    : [];
}

function mine(entries, turn) {
  return (entries ?? []).filter((one) => one.turnId === turn.turnId && one.status === "running");
}

function over(thread) {
  const outcome = thread?.lastOutcome;
  if (!outcome) return { turn: null, headline: "No turn has run yet", lines: [] };
  const turn = thread.turns.find((one) => one.turnId === outcome.turnId) ?? null;
  const took = between(turn?.startedAt, turn?.endedAt);
  const why = outcome.error ?? (outcome.status === "failed" ? outcome.statusReason : null);
  const parts = [
    `Turn ${outcome.turnId} ${outcome.status === "failed" ? "failed" : outcome.status}`,
    Number.isFinite(took) && `after ${span(took)}`,
  ].filter(Boolean);
  return {
    turn,
    seq: outcome.sequence,
    headline: parts.join(" ") + (why ? `: ${brief(why, 240)}` : ""),
    lines: reasons(thread, outcome.turnId),
  };
}

/** What went wrong in a turn, the last few, oldest first; what says the same again is left out. */
function reasons(thread, turnId) {
  const said = new Set();
  const lines = (thread.incidents ?? []).filter((one) => {
    const text = one.message ?? one.type;
    const isNew = one.turnId === turnId && !said.has(text);
    said.add(text);
    return isNew && one.type !== "turn.failed";
  });
  return lines.slice(-MOST_REASONS).map((one) => ({
    tone: "bad",
    text: [one.type, one.message, by(one.by)].filter(Boolean).join(" · "),
    seq: one.lastSequence,
  }));
}

/** Who decided, in words. */
export function by(who) {
  return who && typeof who === "object" ? `by ${who.kind} ${who.name}` : "";
}
