/** Lists over HTTP: the chats, their history, the workflows. Source: protocol.md 6. */

import type { SessionAPI, SessionAPIOptions } from "./session_types.js";

const ASYNC = [
  "deleteSession",
  "getSession",
  "history",
  "listSessions",
  "listWorkflows",
  "openFiles",
  "page",
  "remove",
  "request",
  "update",
  "workflows",
] as const;

/**
 * Makes what asks a server for its lists; `baseUrl` may end in the prefix of a mount. Its inside is
 * loaded with the first question.
 */
export function createSessionAPI(baseUrl: string, options: SessionAPIOptions = {}): SessionAPI {
  const inside = () => import("./chats.js").then(({ chatsOf }) => chatsOf(baseUrl, options));
  const methods = ASYNC.map((name) => [
    name,
    async (...given: never[]) => ((await inside())[name] as (...given: never[]) => unknown)(...given),
  ]);
  return {
    ...(Object.fromEntries(methods) as Omit<SessionAPI, "watch">),
    watch(listener) {
      const abort = new AbortController();
      void inside().then(({ watch }) => watch(listener, abort.signal));
      return () => abort.abort();
    },
  };
}
