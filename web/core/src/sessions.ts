/** Lists over HTTP: the chats, their history, the workflows. Source: protocol.md 6. */

import type { ChatMessage, ChatSession, ChatSessionDetail } from "./draft_types.js";
import type { ErrorPayload } from "./generated/wire.js";
import { authorization, errorOf } from "./link.js";

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
}

/** A message of a chat's history, with what the draft does not tell. */
export interface HistoryMessage extends ChatMessage {
  turn_id: string;
  /** Of the user's: what was sent. */
  input_type?: string;
  data?: Record<string, unknown>;
  /** Of the agent's. */
  status?: string;
  tools?: Array<{ tool: string; args: string; ok: boolean | null }>;
}

/** One page of the list of chats. */
export interface SessionPage {
  sessions: ChatSession[];
  /** Gives the next page as `before`; `null` if this is the last. */
  next: string | null;
}

/** Something that the server refused, or that did not reach it. */
export class ArpError extends Error {
  override readonly name = "ArpError";

  /** What the server said; `code` 0 if there was no answer. */
  readonly payload: ErrorPayload;
  /** Of HTTP, where that was asked. */
  readonly status: number;

  constructor(payload: ErrorPayload, status = 0) {
    super(payload.error);
    this.payload = payload;
    this.status = status;
  }
}

export interface SessionAPI {
  // The draft's four: a failure is an empty list, `null` or `false`.
  listSessions(workflowPath: string, owner?: string): Promise<ChatSession[]>;
  getSession(sessionId: string): Promise<ChatSessionDetail | null>;
  deleteSession(sessionId: string): Promise<boolean>;
  listWorkflows(): Promise<WorkflowInfo[]>;
  // These reject with `ArpError`, so that "no chats" and "no server" are told apart.
  page(query?: { workflow?: string; before?: string; limit?: number }): Promise<SessionPage>;
  history(sessionId: string, query?: { before?: string; limit?: number }): Promise<HistoryMessage[]>;
  remove(sessionId: string): Promise<void>;
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

type Query = { [name: string]: string | number | undefined };

/** Makes what asks a server for its lists; `baseUrl` may end in the prefix of a mount. */
export function createSessionAPI(baseUrl: string, options: SessionAPIOptions = {}): SessionAPI {
  const base = baseUrl.replace(/\/+$/, "");
  const { headers, credentials, fetch: fetcher = (...given) => fetch(...given) } = options;

  const request = async (path: string, init: RequestInit = {}): Promise<Response> => {
    const token = typeof options.token === "function" ? await options.token() : options.token;
    let response: Response;
    try {
      response = await fetcher(base + path, {
        ...(credentials && { credentials }),
        ...init,
        headers: { ...authorization(token ?? null), ...headers, ...(init.headers as object) },
      });
    } catch (error) {
      throw new ArpError({ error: String(error), code: 0 });
    }
    if (response.ok) return response;
    throw new ArpError(await errorOf(response), response.status);
  };
  const get = async <T>(path: string, query: Query = {}): Promise<T> =>
    (await request(path + search(query))).json() as Promise<T>;
  const chat = (id: string) => `/_api/chats/${encodeURIComponent(id)}`;

  return {
    request,
    listSessions: (workflow, owner) =>
      get<ChatSession[]>("/_api/chats", { workflow, owner }).catch(() => []),
    getSession: (id) => get<ChatSessionDetail>(chat(id)).catch(() => null),
    deleteSession: (id) => request(chat(id), { method: "DELETE" }).then(() => true, () => false),
    listWorkflows: () => get<WorkflowInfo[]>("/_api/workflows").catch(() => []),
    workflows: () => get("/_api/workflows"),
    async page(query = {}) {
      const response = await request("/_api/chats" + search(query));
      const sessions = (await response.json()) as ChatSession[];
      return { sessions, next: response.headers.get("x-arp-next") };
    },
    async history(id, query = {}) {
      return (await get<{ messages: HistoryMessage[] }>(chat(id), query)).messages;
    },
    async remove(id) {
      await request(chat(id), { method: "DELETE" });
    },
  };
}

function search(query: Query): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const words = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
  return given.length > 0 ? `?${words}` : "";
}
