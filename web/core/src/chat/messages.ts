/**
 * A turn as messages of user and assistant, for applications that draw their own bubbles. Names and fields are
 * those of the draft's packages, with additions.
 */

import type { ToolRenderEvent } from "../protocol/draft_types.js";
import type { Component, ErrorPayload, InputEcho, JsonObject } from "../protocol/generated/wire.js";
import type { Outgoing, SendPhase } from "../client/outbox.js";
import type { Mark, ToolRun, TurnState, TurnStatus } from "../protocol/screen.js";
import { storyOf } from "../protocol/story.js";

/** One part of a message, in reading order. */
export type MessagePart =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "component"; readonly component: Component }
  | { readonly kind: "tool"; readonly tool: ToolRun }
  | { readonly kind: "thinking"; readonly text: string };

/** One message of the user or the assistant: the same object until something in it changes. */
export interface ChatMessage {
  id: string;
  role: "user" | "assistant";
  /** All text of the message, without components and tools. */
  content: string;
  /** Names of its files, separated by commas. */
  file?: string;
  /** Name of the program that sent it, if it was not the user. */
  origin?: string | null | undefined;
  /** Components of the message, in the form of the draft. */
  uiEvents?: ToolRenderEvent[];
  /** Whether the message already existed when the session was opened. */
  restored?: boolean;
  /** Id of the turn; `null` until the agent side has accepted the message. */
  turnId: string | null;
  /** Text, components and tools in order. */
  parts: readonly MessagePart[];
  /**
   * Time, RFC 3339, if the agent side sends it: when a user's message was sent, or when the turn ended for the last
   * message of the assistant in it.
   */
  at?: string | null | undefined;
  /** Assistant only: status of the turn. */
  status?: TurnStatus | null;
  /** User only: phase of sending, until the agent side echoes the message. */
  sending?: SendPhase;
  /** Reason why it could not be sent, or the error of the turn. */
  error?: ErrorPayload;
}

type Building = { parts: MessagePart[]; error?: ErrorPayload };

/** Return the messages of a turn; `restored` is copied to each of them. */
export function messagesOf(turn: TurnState, restored: boolean): ChatMessage[] {
  const messages: ChatMessage[] = [];
  let open: Building | null = null;
  let answers = 0;
  const close = () => {
    if (open !== null) messages.push(answer(turn, answers++, open, restored));
    open = null;
  };
  const add = (part: MessagePart) => (open ??= { parts: [] }).parts.push(part);
  for (const { kind, number, text } of storyOf(turn)) {
    switch (kind) {
      case "text":
        add({ kind, text });
        break;
      case "component":
        add({ kind, component: turn.output[number] as Component });
        break;
      case "tool":
        add({ kind, tool: turn.tools[number] as ToolRun });
        break;
      case "thinking":
        add({ kind, text: turn.thinking });
        break;
      case "error":
        close();
        open = { parts: [], error: turn.errors[number] as ErrorPayload };
        close();
        break;
      case "input": {
        const echo = turn.inputs[number] as InputEcho;
        if (!isMessage(echo)) break;
        close();
        const id = echo.id ?? `${turn.id}:in${number}`;
        messages.push({
          ...userContent(echo.data),
          id,
          turnId: turn.id,
          at: echo.at,
          origin: echo.origin,
          ...(restored && { restored }),
        });
        break;
      }
    }
  }
  // An empty message of the assistant shows that an answer is coming.
  const isBusy = turn.status === "running" || turn.status === "waiting";
  if (open === null && isBusy && messages.at(-1)?.role !== "assistant") open = { parts: [] };
  close();
  const last = messages.at(-1);
  if (turn.at && last?.role === "assistant") last.at = turn.at;
  return messages;
}

/** Return the message of an input that is not echoed yet, or `null` if the input is not a message. */
export function outgoingMessage({ id, message, files, phase, error }: Outgoing): ChatMessage | null {
  if (!isMessage(message)) return null;
  const names = files.map(({ file }) => file.name);
  return { ...userContent(message.data, names), id, turnId: null, sending: phase, ...(error && { error }) };
}

/** A message with at least the required fields of the draft. */
export type SpokenMessage = Pick<ChatMessage, "role" | "content"> & Partial<ChatMessage>;

/** Return a message as a turn, for code that draws turns. Components stay the same objects, so `===` finds changes. */
export function turnOf(message: SpokenMessage, id = message.id ?? "message"): TurnState {
  const { role, content, error, at } = message;
  const turn = { ...EMPTY, id, status: message.status ?? null, final: message.status !== "running", at };
  if (role === "user") {
    const data: JsonObject = { text: content, ...(message.file && { files: [{ name: message.file }] }) };
    const input = {
      type: "input",
      session_id: "",
      input_type: message.file ? "file" : "text",
      data,
      at: at ?? null,
    } as const;
    return { ...turn, inputs: [input], marks: [mark("input", 0, null)] };
  }
  if (error) return { ...turn, errors: [error], marks: [mark("error", 0, null)] };
  const output: Component[] = [];
  const tools: ToolRun[] = [];
  const marks: Mark[] = [];
  let thinking = "";
  for (const part of message.parts ?? draftParts(message)) {
    const last = output.at(-1)?.id ?? null;
    if (part.kind === "text") output.push(textPart(`${id}/${output.length + 1}`, part.text));
    else if (part.kind === "component") output.push(part.component);
    else if (part.kind === "tool") marks.push(mark("tool", tools.push(part.tool) - 1, last));
    else {
      thinking = part.text;
      marks.push(mark("thinking", 0, last));
    }
  }
  return { ...turn, output, tools, thinking, marks };
}

const EMPTY = {
  position: null,
  inputs: [],
  output: [],
  tools: [],
  thinking: "",
  errors: [],
  permissions: [],
  marks: [],
  usage: null,
} as const;

function mark(kind: Mark["kind"], number: number, component: string | null): Mark {
  return { kind, number, component, characters: null };
}

function textPart(id: string, content: string): Component {
  return { id, type: "text", props: { content } };
}

/** Return the parts of a message in the form of the draft: its text, then its components. */
function draftParts({ content, uiEvents = [] }: SpokenMessage): MessagePart[] {
  const shown = uiEvents.map(({ component: type, props }, number): MessagePart => {
    return { kind: "component", component: { id: `ui${number}`, type, props: props as JsonObject } };
  });
  return content === "" ? shown : [{ kind: "text", text: content }, ...shown];
}

function answer(turn: TurnState, number: number, { parts, error }: Building, restored: boolean): ChatMessage {
  const uiEvents = parts.flatMap((part) =>
    part.kind === "component" ? [{ tool: "", component: part.component.type, props: part.component.props }] : [],
  );
  const content = parts.map((part) => (part.kind === "text" ? part.text : "")).join("");
  return {
    id: `${turn.id}:out${number}`,
    role: "assistant",
    content: error ? error.error : content,
    turnId: turn.id,
    parts,
    status: turn.status,
    ...(uiEvents.length > 0 && { uiEvents }),
    ...(restored && { restored }),
    ...(error && { error }),
  };
}

/** Return whether an input is a message of the conversation. Answers are shown in the component that they answer. */
function isMessage(input: { input_type: string; source_component?: string | null; data: JsonObject }): boolean {
  return input.source_component == null && ["text", "file", "voice"].includes(input.input_type);
}

function userContent(
  data: JsonObject,
  names: readonly string[] = fileNames(data),
): Pick<ChatMessage, "role" | "content" | "parts" | "file"> {
  const text = String(data.text ?? data.transcript ?? "");
  const parts: MessagePart[] = text ? [{ kind: "text", text }] : [];
  return { role: "user", content: text, parts, ...(names.length > 0 && { file: names.join(", ") }) };
}

function fileNames(data: JsonObject): string[] {
  const files = Array.isArray(data.files) ? data.files : [];
  return files.map((file) => (file as JsonObject | null)?.name).filter((name) => typeof name === "string");
}
