/**
 * Turns of a session on a server that only knows the v0.1 draft.
 *
 * Theory of operation. The draft has no turns: it does not echo or acknowledge inputs, and it ends its
 * stream at a question. Here each input begins a turn. A message belongs to the oldest open turn, and a
 * final commit ends that turn. If the turn asked a question, its status is then `waiting`, and the next
 * input completes it. The rules are those of `arp/protocol/draft_agent.py`.
 */

import { isQuestion, SILENT } from "./answers.js";
import { NO_CODE } from "./draft_fields.js";
import { SLOTS } from "./generated/tables.js";
import type { AgentMessage, Component, Input, JsonObject, PatchOp, TurnMessage } from "./generated/wire.js";
import { isObject } from "./is_object.js";

const CUT_OFF = "The connection was lost before the answer was complete. Ask again.";
const IN_TURN = ["delta", "tool_start", "tool_end", "render", "patch", "commit"];
const OURS = { v: 1, session_id: "" } as const;

/** Creates the messages that such a server does not send. */
export class DraftTurns {
  #count = 0;
  /** Ids of the turns without a final commit, oldest first. */
  #open: string[] = [];
  readonly #failed = new Set<string>();
  /** Ids of the unanswered questions, with the ids of their turns. */
  readonly #asking = new Map<string, string>();

  /** Return messages that end the turns which the previous connection left open, as failed. */
  connected(): AgentMessage[] {
    const open = this.#open.splice(0);
    this.#failed.clear();
    return open.flatMap((turn_id): AgentMessage[] => [
      { ...OURS, type: "error", turn_id, payload: { error: CUT_OFF, code: NO_CODE } },
      status(turn_id, "failed"),
      { ...OURS, type: "commit", turn_id, final: true },
    ]);
  }

  /** Begin a turn for an input; return the messages that a server of ARP 1 would send. */
  begin(input: Input): AgentMessage[] {
    const { input_type, data, source_component, surface = "main", id } = input;
    const ack = { ...OURS, type: "ack", id: String(id) } as const;
    if (SILENT.includes(input_type)) return [ack];
    const before = this.#answered(input, surface);
    const turn_id = this.#new();
    const echo = { ...OURS, type: "input", turn_id, surface, input_type, data, source_component, id } as AgentMessage;
    return [...before, echo, status(turn_id, "running"), { ...ack, turn_id }];
  }

  /** Return a message with the id of its turn, preceded by the message for a change of the turn's status, if any. */
  placed(message: AgentMessage): AgentMessage[] {
    const { turn_id } = message as { turn_id?: string | null };
    if (turn_id != null) return [message];
    if (message.type === "error") {
      const { payload } = message;
      const [turn] = this.#open;
      if (turn === undefined || payload.id != null) return [message];
      this.#failed.add(turn);
      return [{ ...message, turn_id: turn }];
    }
    return IN_TURN.includes(message.type) ? this.#inTurn(message) : [message];
  }

  #inTurn(message: AgentMessage): AgentMessage[] {
    const isCommit = message.type === "commit";
    if (isCommit && this.#open.length === 0) return [message];
    // A server of the draft may send output without an input, such as a greeting: it gets a turn of its own.
    const out = this.#open.length === 0 ? [status(this.#new(), "running")] : [];
    const turn_id = this.#open[0] as string;
    for (const name of questionsIn(message)) this.#asking.set(name, turn_id);
    const placed = { ...message, turn_id } as AgentMessage;
    if (!isCommit || !message.final) return [...out, placed];
    this.#open.shift();
    const asks = [...this.#asking.values()].includes(turn_id);
    const end = this.#failed.delete(turn_id) ? "failed" : asks ? "waiting" : "completed";
    return [status(turn_id, end), placed];
  }

  #new(): string {
    const id = `d${++this.#count}`;
    this.#open.push(id);
    return id;
  }

  /** Return the messages that close the question answered by an input, and complete the turns that waited. */
  #answered({ source_component: target, input_type, data }: Input, surface: string): AgentMessage[] {
    const out: AgentMessage[] = [];
    if (target != null && this.#asking.has(target)) {
      const ops: PatchOp[] = [{ op: "update", target, path: "props.state", value: "answered" }];
      const value = answerIn(input_type, data);
      if (value !== undefined) ops.push({ op: "update", target, path: "props.answer", value });
      out.push({ ...OURS, type: "patch", surface, ops }, { ...OURS, type: "commit" });
    }
    const ended = new Set([...this.#asking.values()].filter((turn) => !this.#open.includes(turn)));
    for (const [name, turn] of this.#asking) if (ended.has(turn)) this.#asking.delete(name);
    return [...out, ...[...ended].map((turn) => status(turn, "completed"))];
  }
}

function status(turn_id: string, is: TurnMessage["status"]): AgentMessage {
  return { ...OURS, type: "turn", turn_id, status: is };
}

function answerIn(type: Input["input_type"], { action, selected, text }: JsonObject) {
  if (type === "action" && (action === "confirm" || action === "deny")) return action === "confirm";
  return type === "selection" ? selected : type === "text" ? text : undefined;
}

/** Return the ids of the questions that a message adds. */
function questionsIn(message: AgentMessage): string[] {
  if (message.type === "render") return message.components.flatMap(questions);
  if (message.type !== "patch") return [];
  return message.ops.flatMap((op) => ("component" in op ? questions(op.component) : []));
}

function questions(component: Component): string[] {
  const { id, type, props } = component;
  const inside = type in SLOTS ? [props.children, props.tabs, props.left, props.right].flat() : [];
  const children = inside.map((one) => (isObject(one) && isObject(one.component) ? one.component : one));
  return [
    ...(isQuestion(component) ? [id] : []),
    ...children.filter(isObject).flatMap((one) => questions(one as unknown as Component)),
  ];
}
