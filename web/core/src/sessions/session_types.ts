/** What the lists over HTTP hold, and what asks for them. Source: protocol.md 6. */

import type { ChatMessage, ChatSession, ChatSessionDetail, ToolRenderEvent } from "../protocol/draft_types.js";
import type { OutputAnchor, ErrorPayload } from "../protocol/generated/wire.js";

export interface WorkflowInfo {
  name: string;
  path: string;
  method: string;
  is_stream: boolean;
  chat_param?: string;
  title?: string;
  description?: string;
  params?: Array<{ Name: string; Type: string }>;
  suggestions?: string[];
  /** What the app calls itself. */
  app_title?: string;
}

/** A message of a chat's history, with what the draft does not have. */
export interface HistoryMessage extends ChatMessage {
  turn_id: string;
  /** Of the user's: what was sent. */
  input_type?: string;
  data?: Record<string, unknown>;
  /** The program that began the turn, where nobody typed it. */
  origin?: string;
  /** Of the agent's. */
  status?: string;
  ui_events?: Array<ToolRenderEvent & { id?: string }>;
  /** The order of its text and its components; `characters` of a text, which `content` has one after the other. */
  parts?: Array<{ id: string; characters?: number }>;
  tools?: HistoryTool[];
}

/** A use of a tool in the history; what is not known is absent. */
export interface HistoryTool {
  tool: string;
  args: string;
  ok: boolean | null;
  error?: string;
  /** At most 2 KiB, cut off with `…`. */
  result?: string;
  /** Where the whole result is, below the server's root. */
  result_ref?: string;
  duration_ms?: number;
  behind?: OutputAnchor;
}

/** A chat in a list. */
export interface ChatRow extends ChatSession {
  pinned: boolean;
  /** Of a search: a turn with something that the title has not, and what is around it. */
  match?: { turn_id: string; text: string };
}

/** One page of the list of chats. */
export interface SessionPage {
  sessions: ChatRow[];
  /** Asks for the next page as `before`; `null` if this is the last. */
  next: string | null;
}

/** Something that the server refused, or that did not reach it. */
export class ArpError extends Error {
  override readonly name = "ArpError";

  /** The server's message; `code` 0 if there was no answer. */
  readonly payload: ErrorPayload;
  /** Of HTTP, where that was asked. */
  readonly status: number;

  constructor(payload: ErrorPayload, status = 0) {
    super(payload.error);
    this.payload = payload;
    this.status = status;
  }
}

/** Listeners for changes in a list of chats. */
export interface ChatListener {
  /** A chat that is new or has changed. */
  chat?(row: ChatRow): void;
  /** A chat that is gone. */
  removed?(id: string): void;
  /** From here on all is reported. */
  opened?(): void;
  /** Nothing is reported for a while. */
  closed?(): void;
}

/** Something of a deleted chat that is still there. */
export interface Remainder {
  /** Who keeps it, such as the name of a runtime. */
  keeper: string;
  id: string;
  /** Why, for people. */
  reason: string;
  /** Whether the server tries again by itself. */
  isRetried: boolean;
}

export interface SessionAPI {
  // The draft's four: a failure is an empty list, `null` or `false`.
  listSessions(workflowPath: string, owner?: string): Promise<ChatSession[]>;
  getSession(sessionId: string): Promise<ChatSessionDetail | null>;
  deleteSession(sessionId: string): Promise<boolean>;
  listWorkflows(): Promise<WorkflowInfo[]>;
  // These reject with `ArpError`, so that "no chats" and "no server" are different.
  /** Pinned chats come first. A page of a search may be short, or empty, with more to come. */
  page(query?: { query?: string; workflow?: string; before?: string; limit?: number }): Promise<SessionPage>;
  /** Names a chat (an empty title restores its own), or pins it. */
  update(sessionId: string, change: { title?: string; pinned?: boolean }): Promise<ChatRow>;
  /** Reports what changes in the list; returns a function that stops it. */
  watch(listener: ChatListener): () => void;
  /** Lets `src` and links to the server's files work on its own page, for an hour; without a token they do. */
  openFiles(): Promise<void>;
  history(sessionId: string, query?: { before?: string; limit?: number }): Promise<HistoryMessage[]>;
  /** Deletes a chat; returns what is still there, because a runtime could not delete it. */
  remove(sessionId: string): Promise<Remainder[]>;
  workflows(): Promise<WorkflowInfo[]>;
  /** Any route below the base. */
  request(path: string, init?: RequestInit): Promise<Response>;
}

export interface SessionAPIOptions {
  token?: string | null | (() => string | null | Promise<string | null>);
  headers?: Record<string, string>;
  fetch?: typeof fetch;
  /** Whether cookies go along to another origin. */
  credentials?: RequestCredentials;
}
