/**
 * A turn as messages of two who talk: what applications draw that bring their own bubbles. Names
 * and fields of the draft's packages, with more beside them.
 */

import type { ToolRenderEvent } from "../protocol/draft_types.js";
import type { Component, ErrorPayload, InputEcho, JsonObject } from "../protocol/generated/wire.js";
import type { Outgoing, SendPhase } from "../client/outbox.js";
import type { Mark, ToolRun, TurnState, TurnStatus } from "../protocol/screen.js";
import { storyOf } from "../protocol/story.js";

/** A stretch of a message, in the order in which it is to be read. */
export type MessagePart =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "component"; readonly component: Component }
  | { readonly kind: "tool"; readonly tool: ToolRun }
  | { readonly kind: "thinking"; readonly text: string };

/** One message of one side. The same object until something in it changes. */
export interface ChatMessage {
  id: string;
  role: "user" | "assistant";
  /** All its text, without what is between. */
  content: string;
  /** Names of its files, with commas between. */
  file?: string;
  /** The program that sent it, where nobody typed it. */
  origin?: string | null | undefined;
  /** Its components, in the form of the draft. */
  uiEvents?: ToolRenderEvent[];
  /** It was there already when the session was opened. */
  restored?: boolean;
  /** `null` while the agent side has not taken it. */
  turnId: string | null;
  /** Text, components and tools in order. */
  parts: readonly MessagePart[];
  /** When it was sent, and of the agent's last of a turn, when that ended; RFC 3339, where the agent side says. */
  at?: string | null | undefined;
  /** Of the agent's: the status of its turn. */
  status?: TurnStatus | null;
  /** Of the user's, until the agent side echoes it. */
  sending?: SendPhase;
  /** Why it could not be sent, or what went wrong in the turn. */
  error?: ErrorPayload;
}

type Building = { parts: MessagePart[]; error?: ErrorPayload };

/** The messages of a turn; `restored` is copied to each of them. */
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
  const isBusy = turn.status === "running" || turn.status === "waiting";
  if (open === null && isBusy && messages.at(-1)?.role !== "assistant") open = { parts: [] };
  close();
  const last = messages.at(-1);
  if (turn.at && last?.role === "assistant") last.at = turn.at;
  return messages;
}

/** Inputs that the agent side has not echoed yet; `null` for what is no text. */
export function outgoingMessage({ id, message, files, phase, error }: Outgoing): ChatMessage | null {
  if (!isMessage(message)) return null;
  const names = files.map(({ file }) => file.name);
  return { ...userContent(message.data, names), id, turnId: null, sending: phase, ...(error && { error }) };
}

/** The least that a message is: the draft's fields, or more of them. */
export type SpokenMessage = Pick<ChatMessage, "role" | "content"> & Partial<ChatMessage>;

/** A message as a turn, for what draws turns. It keeps its components, so `===` shows what changed. */
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

/** A message in the form of the draft: its text, then its components. */
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

/** Whether an input is a message of the conversation; answers are shown in their component. */
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
