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
 * Makes what asks a server for its lists; `baseUrl` may end in the prefix of a mount. Its inside is
 * loaded with the first question.
 */
export function createSessionAPI(baseUrl: string, options: SessionAPIOptions = {}): SessionAPI {
  let loading: Promise<Chats> | null = null;
  // Kept: each `import()` takes a task of its own, which a page that is being closed does not get any more.
  const inside = () =>
    (loading ??= import("./chats.js").then(
      ({ chatsOf }) => chatsOf(baseUrl, options),
      (error: unknown) => {
        loading = null; // tried again with the next call
        throw error;
      },
    ));
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
