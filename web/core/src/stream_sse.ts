/**
 * The draft's workflow stream: one turn over server-sent events, by POST, or by GET to follow a run
 * that is under way. Source: protocol.md 6.
 */

import type { StepEvent, ToolRenderEvent } from "./draft_types.js";

export interface ToolEvent {
  tool: string;
  args?: string;
  ok?: boolean;
}

export interface SSECallbacks {
  onRunId?: (id: string) => void;
  onStep?: (event: StepEvent) => void;
  onDelta?: (delta: string) => void;
  onResult?: (data: unknown) => void;
  onError?: (error: string) => void;
  /** The stream is over, well or not; called once. */
  onDone?: () => void;
  onToolStart?: (event: ToolEvent) => void;
  onToolEnd?: (event: ToolEvent) => void;
  onToolRender?: (event: ToolRenderEvent & { id?: string }) => void;
  /** A component that was rendered went away. */
  onToolRemove?: (id: string) => void;
}

export interface StreamSSEOptions {
  /** Sent in place of the body, with files. */
  formData?: FormData;
  signal?: AbortSignal;
  headers?: Record<string, string>;
}

/**
 * Posts a message to a workflow and tells what comes. Whatever fails is told by `onError`, also a
 * stream that breaks off before its end; then `onDone` follows. Aborting tells nothing more.
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
