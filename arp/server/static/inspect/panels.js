/** What a snapshot tells, a panel each: turns, tools, tasks, permissions, cost, evidence, state. */

import { el } from "./dom.js";
import { evidence, state } from "./record_panels.js";
import { permissions, routing } from "./rule_panels.js";
import {
  attempts,
  calls,
  lines,
  outputs,
  processes,
  queue,
  tasks,
  turns,
  work,
} from "./work_panels.js";

/** Name of a panel → its label, how many things are in it, how bad, and its contents. */
export const PANELS = {
  problems: {
    label: "Problems",
    count: (snapshot) => snapshot.incidents?.length ?? 0,
    isBad: (snapshot) => snapshot.incidents?.length > 0,
    draw: (snapshot, go) => [
      lines("What went wrong", snapshot.incidents, go),
      lines("Worth knowing", snapshot.diagnostics, go),
    ],
  },
  turns: {
    label: "Turns",
    count: (snapshot) => sum(snapshot.threads, (thread) => thread.turns?.length),
    draw: (snapshot, go) =>
      (snapshot.threads ?? []).flatMap((thread) => [turns(thread, go), queue(thread)]),
  },
  tools: {
    label: "Tools",
    count: (snapshot) => sum(snapshot.threads, (thread) => thread.toolCalls?.length),
    isBad: (snapshot) =>
      (snapshot.threads ?? []).some((thread) => thread.toolCalls?.some((call) => call.error)),
    draw: (snapshot, go) =>
      (snapshot.threads ?? []).flatMap((thread) => [
        calls(thread, go),
        processes(thread, go),
        outputs(thread, go),
      ]),
  },
  tasks: {
    label: "Tasks",
    count: (snapshot) => snapshot.taskSummary?.total ?? 0,
    isBad: (snapshot) => (snapshot.tasks ?? []).some((task) => task.status === "failed"),
    draw: (snapshot, go) => [tasks(snapshot, go), attempts(snapshot, go), ...work(snapshot, go)],
  },
  permissions: {
    label: "Permissions",
    count: (snapshot) =>
      sum(snapshot.threads, (thread) => thread.pendingRequests?.length) +
      (snapshot.permissionSandboxSummary?.decisions?.length ?? 0),
    isBad: (snapshot) => snapshot.permissionSandboxSummary?.denials?.length > 0,
    draw: permissions,
  },
  cost: {
    label: "Routing and cost",
    count: () => 0,
    draw: routing,
  },
  evidence: {
    label: "Evidence",
    count: (snapshot) => snapshot.evidenceRefs?.length ?? 0,
    draw: evidence,
  },
  state: {
    label: "State",
    count: () => 0,
    draw: state,
  },
};

function sum(items, give) {
  return (items ?? []).reduce((total, item) => total + (give(item) ?? 0), 0);
}

/** A placeholder for a panel of which no part has anything. */
export function nothing(text) {
  return el("p", { class: "empty" }, text);
}
