/** Implementation of the sessions API, loaded with its first call. Source: server.md, "HTTP". */

import { watchChats } from "./chat_watch.js";
import type { ChatSessionDetail } from "../protocol/draft_types.js";
import { parseJson } from "../protocol/exact_json.js";
import { authorization, errorOf } from "../transport/link.js";
import {
  ArpError,
  type ChatListener,
  type ChatRow,
  type HistoryMessage,
  type Remainder,
  type SessionAPI,
  type SessionAPIOptions,
} from "./session_types.js";

type Query = { [name: string]: string | number | undefined };

/** The sessions API, except that a signal ends `watch`. */
export interface Chats extends Omit<SessionAPI, "watch"> {
  watch(listener: ChatListener, signal: AbortSignal): Promise<void>;
}

/** Return the sessions API of a server; `baseUrl` may end in the prefix of a mount. */
export function chatsOf(baseUrl: string, options: SessionAPIOptions): Chats {
  const base = baseUrl.replace(/\/+$/, "");
  const { headers, credentials, fetch: fetcher = (...given) => fetch(...given) } = options;

  const tokenNow = async () => (typeof options.token === "function" ? await options.token() : options.token) ?? null;

  const request = async (path: string, init: RequestInit = {}): Promise<Response> => {
    const token = await tokenNow();
    let response: Response;
    try {
      response = await fetcher(base + path, {
        ...(credentials && { credentials }),
        ...init,
        headers: { ...authorization(token), ...headers, ...(init.headers as object) },
      });
    } catch (error) {
      throw new ArpError({ error: String(error), code: 0 });
    }
    if (response.ok) return response;
    throw new ArpError(await errorOf(response), response.status);
  };
  const get = async <T>(path: string, query: Query = {}): Promise<T> =>
    parseJson(await (await request(path + search(query))).text()) as T;
  const chat = (id: string) => `/_api/chats/${encodeURIComponent(id)}`;

  return {
    request,
    listSessions: (workflow, owner) => get<ChatRow[]>("/_api/chats", { workflow, owner }).catch(() => []),
    getSession: (id) => get<ChatSessionDetail>(chat(id)).catch(() => null),
    deleteSession: (id) =>
      request(chat(id), { ...OUTLIVES, method: "DELETE" }).then(
        () => true,
        () => false,
      ),
    listWorkflows: () => get<[]>("/_api/workflows").catch(() => []),
    workflows: () => get("/_api/workflows"),
    async page(query = {}) {
      const response = await request("/_api/chats" + search(query));
      return { sessions: (await response.json()) as ChatRow[], next: response.headers.get("x-arp-next") };
    },
    async history(id, query = {}) {
      return (await get<{ messages: HistoryMessage[] }>(chat(id), query)).messages;
    },
    async update(id, change) {
      const as = { "Content-Type": "application/json" };
      const response = await request(chat(id), {
        ...OUTLIVES,
        method: "PATCH",
        body: JSON.stringify(change),
        headers: as,
      });
      return response.json() as Promise<ChatRow>;
    },
    async remove(id) {
      const answer = (await (await request(chat(id), { ...OUTLIVES, method: "DELETE" })).json()) as {
        remains?: Remainder[];
      };
      return answer.remains ?? [];
    },
    async openFiles() {
      if ((await tokenNow()) !== null) await request("/_api/blobs/cookie", { method: "POST" });
    },
    watch: (listener, signal) => watchChats(request, listener, signal),
  };
}

/** Option of a request that is not cancelled when the page is closed. */
const OUTLIVES: RequestInit = { keepalive: true };

function search(query: Query): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const words = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
  return given.length > 0 ? `?${words}` : "";
}
