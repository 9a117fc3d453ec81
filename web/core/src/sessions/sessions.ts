/** Lists over HTTP: the chats, their history, the workflows. Source: protocol.md 6. */

import type { Chats } from "./chats.js";
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
 * Return the sessions API of a server; `baseUrl` may end in the prefix of a mount. The implementation is loaded with
 * the first call.
 */
export function createSessionAPI(baseUrl: string, options: SessionAPIOptions = {}): SessionAPI {
  let loading: Promise<Chats> | null = null;
  // The promise is kept: each `import()` needs a task of its own, and a page that is being closed gets no further task.
  const load = () =>
    (loading ??= import("./chats.js").then(
      ({ chatsOf }) => chatsOf(baseUrl, options),
      (error: unknown) => {
        loading = null; // the next call tries again
        throw error;
      },
    ));
  const methods = ASYNC.map((name) => [
    name,
    async (...given: never[]) => ((await load())[name] as (...given: never[]) => unknown)(...given),
  ]);
  return {
    ...(Object.fromEntries(methods) as Omit<SessionAPI, "watch">),
    watch(listener) {
      const abort = new AbortController();
      void load().then(({ watch }) => watch(listener, abort.signal));
      return () => abort.abort();
    },
  };
}
