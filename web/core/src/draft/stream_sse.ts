/**
 * The draft's workflow stream: one turn over server-sent events. POST begins a run, GET follows a run that is in
 * progress. Source: protocol.md 6.
 */

import type { SSECallbacks } from "./workflow_stream.js";

export interface StreamSSEOptions {
  /** Body of a message with files; it replaces `body`. */
  formData?: FormData;
  signal?: AbortSignal;
  headers?: Record<string, string>;
}

/**
 * Post a message to a workflow and report the events of the run. Every failure calls `onError`, also a stream
 * that breaks off before its end; `onDone` follows. After an abort nothing is reported.
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

/** Report the events of an existing run from its beginning; otherwise the same as `streamSSE`. */
export async function connectSSE(
  url: string,
  callbacks: SSECallbacks,
  signal?: AbortSignal,
  headers: Record<string, string> = {},
): Promise<void> {
  await (await import("./workflow_stream.js")).follow(url, { headers }, callbacks, signal);
}
