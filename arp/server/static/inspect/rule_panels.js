/** Panels of what was allowed and what it cost: permissions, sandbox, routing, limits, money. */

import { badge, failure, link, table, terms } from "./grid.js";
import { by } from "./story.js";
import { brief, clock, count, money, older, span } from "./words.js";

const NOT_APPLICABLE = "not_applicable";

export function permissions(snapshot, go) {
  const told = snapshot.permissionSandboxSummary ?? {};
  const pending = (snapshot.threads ?? []).flatMap((thread) => thread.pendingRequests ?? []);
  return [
    table(
      "Waiting for an answer",
      [
        ["Fact", (one) => link(one.firstSequence, go)],
        ["Kind", (one) => one.component ?? one.kind],
        ["Asks", (one) => brief(one.prompt ?? one.tool, 300), "wide"],
        ["Tool", (one) => one.tool, "mono"],
        ["Since", (one) => clock(one.requestedAt), "mono"],
        ["Action", (one) => one.actionId, "mono"],
        ["Turn", (one) => one.turnId, "mono"],
      ],
      pending,
    ),
    table(
      "Decisions",
      [
        ["Fact", (one) => link(one.firstSequence, go)],
        ["Time", (one) => clock(one.at), "mono"],
        ["Tool", (one) => one.tool, "mono"],
        ["Decision", (one) => badge(one.decision)],
        ["By", (one) => by(one.deniedBy ?? one.decidedBy), "wide"],
        ["Turn", (one) => one.turnId, "mono"],
        ["Call", (one) => one.toolCallId, "mono"],
      ],
      [...(told.decisions ?? [])].reverse(),
      older(told.olderDecisions),
    ),
    table(
      "Stopped by the sandbox",
      [
        ["Fact", (one) => link(one.firstSequence, go)],
        ["Operation", (one) => one.operation, "mono"],
        ["Target", (one) => brief(one.target, 300), "wide mono"],
        ["Sandbox", (one) => one.sandbox],
        ["Turn", (one) => one.turnId, "mono"],
      ],
      told.violations,
    ),
    terms("Sandbox", [
      ["Name", told.sandbox?.sandbox],
      ["Mode", told.sandbox?.mode],
      ["Network", told.sandbox?.network == null ? "" : told.sandbox.network ? "allowed" : "closed"],
      ["May read", told.sandbox?.readable?.join(", ")],
      ["May write", told.sandbox?.writable?.join(", ")],
    ]),
    terms(
      "Policies",
      Object.entries(told.policies ?? {}).map(([name, value]) => [name, brief(value)]),
    ),
  ];
}

export function routing(snapshot, go) {
  const told = snapshot.routingLimitSummary ?? {};
  if (told.status === NOT_APPLICABLE) return [];
  const { selection, notPossible, cost } = told;
  return [
    terms("Model", [
      ["Chosen", told.selectedModel],
      ["Provider", selection?.provider],
      ["Why", told.singleCandidate ? "the only candidate" : selection?.reason],
      ["Fact", link(selection?.firstSequence, go)],
      ["Not possible", notPossible ? failure(notPossible.reason) : ""],
      [
        "Candidates",
        (told.candidates ?? [])
          .map((one) => one.model + (one.excluded ? ` (not: ${one.excluded})` : ""))
          .join(", "),
      ],
    ]),
    terms("Cost", [
      ["Amount", money(cost?.amounts)],
      ["Input tokens", count(cost?.inputTokens)],
      ["of which cached", count(cost?.cachedInputTokens)],
      ["Output tokens", count(cost?.outputTokens)],
      ["Estimated", money(told.estimatedCost?.amounts)],
    ]),
    table(
      "By model",
      [
        ["Model", ([name]) => name],
        ["Amount", ([, one]) => money(one.amounts), "number"],
        ["Input tokens", ([, one]) => count(one.inputTokens), "number"],
        ["Output tokens", ([, one]) => count(one.outputTokens), "number"],
        ["Records", ([, one]) => count(one.records), "number"],
      ],
      Object.entries(told.costByModel ?? {}),
    ),
    table(
      "Fallbacks",
      [
        ["Fact", (one) => link(one.firstSequence, go)],
        ["From", (one) => one.failedModel],
        ["To", (one) => one.model],
        ["Why", (one) => brief(one.reason, 300), "wide"],
        ["Turn", (one) => one.turnId, "mono"],
      ],
      told.fallbacks,
    ),
    table(
      "Limits that were met",
      [
        ["Fact", (one) => link(one.firstSequence, go)],
        ["Time", (one) => clock(one.at), "mono"],
        ["Type", (one) => one.type, "mono"],
        ["Limit", (one) => one.name],
        [
          "Left",
          (one) => (one.remaining == null ? "" : `${count(one.remaining)} ${one.unit ?? ""}`),
          "number",
        ],
        [
          "Again in",
          (one) => (one.retryAfterS == null ? one.resetsAt : span(one.retryAfterS * 1000)),
          "number",
        ],
        ["Turn", (one) => one.turnId, "mono"],
      ],
      [...(told.limits ?? [])].reverse(),
    ),
  ];
}
