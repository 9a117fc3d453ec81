/**
 * The draft's workflow stream: one turn over server-sent events, by POST, or by GET to follow a run
 * that is under way. Source: protocol.md 6.
 */

import type { SSECallbacks } from "./workflow_stream.js";

export interface StreamSSEOptions {
  /** Sent in place of the body, with files. */
  formData?: FormData;
  signal?: AbortSignal;
  headers?: Record<string, string>;
}

/**
 * Posts a message to a workflow and reports what comes. Any failure is reported by `onError`, also a
 * stream that breaks off before its end; then `onDone` follows. After an abort nothing is reported.
 */
export async function streamSSE(
  url: string,
  body: unknown,
  callbacks: SSECallbacks,
  options: StreamSSEOptions = {},
): Promise<void> {
  const { formData, signal, headers } = options;
  const init: RequestInit = {
    method: "POST",
    headers: formData ? { ...headers } : { "Content-Type": "application/json", ...headers },
    body: formData ?? JSON.stringify(body),
  };
  await (await import("./workflow_stream.js")).follow(url, init, callbacks, signal);
}

/** Follows a run from its beginning; otherwise as `streamSSE`. */
export async function connectSSE(
  url: string,
  callbacks: SSECallbacks,
  signal?: AbortSignal,
  headers: Record<string, string> = {},
): Promise<void> {
  await (await import("./workflow_stream.js")).follow(url, { headers }, callbacks, signal);
}
