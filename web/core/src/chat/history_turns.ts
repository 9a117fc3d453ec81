/** Turns from the history over HTTP, which are older than those of the connection. */

import type { ArpClient } from "../client/client.js";
import type { Component, JsonObject } from "../protocol/generated/wire.js";
import type { Mark, ToolRun, TurnState } from "../protocol/screen.js";
import type { HistoryMessage } from "../sessions/session_types.js";

/** Return turns before another turn, oldest first. Rejects with `ArpError`. */
export async function olderTurns(
  client: ArpClient,
  sessionId: string,
  before: string,
  limit: number,
): Promise<TurnState[]> {
  return turnsOf(await client.sessions.history(sessionId, { before, limit }));
}

/**
 * Combine the messages of user and agent into turns. The output is in chronological order; if the server does not send
 * the order (`parts`), the text comes first.
 */
export function turnsOf(messages: readonly HistoryMessage[]): TurnState[] {
  const turns = new Map<string, TurnState>();
  for (const message of messages) {
    const turn = turns.get(message.turn_id) ?? emptyTurn(message.turn_id);
    turns.set(message.turn_id, message.role === "user" ? withInput(turn, message) : withAnswer(turn, message));
  }
  return [...turns.values()];
}

function emptyTurn(id: string): TurnState {
  const none: readonly never[] = [];
  return {
    id,
    status: "completed",
    position: null,
    inputs: none,
    output: none,
    tools: none,
    thinking: "",
    errors: none,
    marks: none,
    permissions: none,
    usage: null,
    final: true,
  };
}

function withInput(
  turn: TurnState,
  { input_type: type = "text", data, content, timestamp: at, origin }: HistoryMessage,
): TurnState {
  const sent = { data: (data ?? { text: content }) as JsonObject, at, ...(origin !== undefined && { origin }) };
  const input = { type: "input" as const, session_id: "", input_type: type, ...sent };
  return { ...turn, inputs: [input], marks: [{ kind: "input", number: 0, component: null, characters: null }] };
}

function withAnswer(turn: TurnState, message: HistoryMessage): TurnState {
  const { tools = [], status } = message;
  const [output, named] = outputOf(turn.id, message);
  const runs: ToolRun[] = tools.map(
    ({ tool, args, ok, error = null, result, result_ref: resultRef, duration_ms: durationMs }) => ({
      callId: "",
      tool,
      args,
      ok,
      error,
      result,
      resultRef,
      durationMs,
    }),
  );
  const marks = tools.map(({ behind }, number): Mark => {
    const component = behind?.component == null ? null : (named.get(behind.component) ?? null);
    return { kind: "tool", number, component, characters: behind?.characters ?? null };
  });
  return {
    ...turn,
    status: (status as TurnState["status"] | undefined) ?? "completed",
    output,
    tools: runs,
    at: message.timestamp || null,
    marks: [...turn.marks, ...marks],
  };
}

/**
 * Return the output of a turn, and the new ids of its components by their old ids. They need new ids, because an old id
 * may belong to another component by now.
 */
function outputOf(
  turnId: string,
  { content, ui_events: events = [], parts }: HistoryMessage,
): [Component[], Map<string, string>] {
  const named = new Map<string, string>();
  const shown = new Map<string, Component>();
  events.forEach(({ id, component: type, props }, at) => {
    const here = `${turnId}-old-${at}`;
    named.set(id ?? here, here);
    shown.set(id ?? here, { id: here, type, props: props as JsonObject });
  });
  const textPart = (id: string, text: string): Component => ({
    id,
    type: "text",
    props: { content: text, format: "markdown" },
  });
  if (parts === undefined)
    return [[...(content === "" ? [] : [textPart(`${turnId}/1`, content)]), ...shown.values()], named];
  const characters = Array.from(content); // `parts` counts Unicode characters, not UTF-16 units
  const output = parts.flatMap(({ id, characters: count }): Component[] => {
    const component = shown.get(id);
    if (count === undefined) return component ? [component] : [];
    named.set(id, id);
    return [textPart(id, characters.splice(0, count).join(""))];
  });
  return [output, named];
}
