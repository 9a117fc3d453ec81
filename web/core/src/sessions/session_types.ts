/** Types of the sessions API: the lists over HTTP and the functions that request them. Source: protocol.md 6. */

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
  /** Title of the app. */
  app_title?: string;
}

/** A message of a chat's history, with fields that the draft does not have. */
export interface HistoryMessage extends ChatMessage {
  turn_id: string;
  /** User only: type of the input; `data` is its content. */
  input_type?: string;
  data?: Record<string, unknown>;
  /** Name of the program that began the turn, if it was not the user. */
  origin?: string;
  /** Agent only: status of the turn. */
  status?: string;
  ui_events?: Array<ToolRenderEvent & { id?: string }>;
  /** Order of texts and components. A text has its length in `characters`; `content` is all texts joined. */
  parts?: Array<{ id: string; characters?: number }>;
  tools?: HistoryTool[];
}

/** A tool call in the history; unknown fields are absent. */
export interface HistoryTool {
  tool: string;
  args: string;
  ok: boolean | null;
  error?: string;
  /** Beginning of the result: at most 2 KiB, cut off with `…`. */
  result?: string;
  /** Path of the full result below the server's root. */
  result_ref?: string;
  duration_ms?: number;
  behind?: OutputAnchor;
}

/** A chat in a list. */
export interface ChatRow extends ChatSession {
  pinned: boolean;
  /** In the result of a search: a turn that contains a word which the title does not, and the text around it. */
  match?: { turn_id: string; text: string };
}

/** One page of the list of chats. */
export interface SessionPage {
  sessions: ChatRow[];
  /** Value of `before` for the next page; `null` if this is the last page. */
  next: string | null;
}

/** A request that the server refused, or that did not reach the server. */
export class ArpError extends Error {
  override readonly name = "ArpError";

  /** Error of the server; `code` is 0 if there was no answer. */
  readonly payload: ErrorPayload;
  /** HTTP status; 0 if there was no HTTP response. */
  readonly status: number;

  constructor(payload: ErrorPayload, status = 0) {
    super(payload.error);
    this.payload = payload;
    this.status = status;
  }
}

/** Listeners for changes in a list of chats. */
export interface ChatListener {
  /** Called for a chat that is new or has changed. */
  chat?(row: ChatRow): void;
  /** Called for a chat that was deleted. */
  removed?(id: string): void;
  /** Called when reporting begins; load the list again here. */
  opened?(): void;
  /** Called when reporting is interrupted. */
  closed?(): void;
}

/** Data of a deleted chat that could not be deleted. */
export interface Remainder {
  /** Name of the part that keeps it, such as a runtime. */
  keeper: string;
  id: string;
  /** Reason, as text for the user. */
  reason: string;
  /** Whether the server tries again by itself. */
  isRetried: boolean;
}

export interface SessionAPI {
  // The four functions of the draft. On a failure they return an empty list, `null` or `false`.
  listSessions(workflowPath: string, owner?: string): Promise<ChatSession[]>;
  getSession(sessionId: string): Promise<ChatSessionDetail | null>;
  deleteSession(sessionId: string): Promise<boolean>;
  listWorkflows(): Promise<WorkflowInfo[]>;
  // The following functions reject with `ArpError`, so that "no chats" and "no server" can be distinguished.
  /** Return one page of the list; pinned chats come first. A short or empty page of a search may have a next page. */
  page(query?: { query?: string; workflow?: string; before?: string; limit?: number }): Promise<SessionPage>;
  /** Rename a chat, or pin it. An empty title restores the original title. */
  update(sessionId: string, change: { title?: string; pinned?: boolean }): Promise<ChatRow>;
  /** Report changes in the list; return a function that stops it. */
  watch(listener: ChatListener): () => void;
  /**
   * Get a cookie for one hour. With it, `src` and links to the server's files work on the server's own page. Only needed
   * with a token.
   */
  openFiles(): Promise<void>;
  history(sessionId: string, query?: { before?: string; limit?: number }): Promise<HistoryMessage[]>;
  /** Delete a chat; return the data that a runtime could not delete. */
  remove(sessionId: string): Promise<Remainder[]>;
  workflows(): Promise<WorkflowInfo[]>;
  /** Request any path below the base address. */
  request(path: string, init?: RequestInit): Promise<Response>;
}

export interface SessionAPIOptions {
  token?: string | null | (() => string | null | Promise<string | null>);
  headers?: Record<string, string>;
  fetch?: typeof fetch;
  /** Whether cookies are sent to another origin. */
  credentials?: RequestCredentials;
}
