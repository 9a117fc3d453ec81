/**
 * The draft's workflow stream: one turn over server-sent events, by POST, or by GET to follow a run
 * that is under way. Source: protocol.md 6.
 */

import type { StepEvent, ToolRenderEvent } from "./draft_types.js";
import { guarded } from "./cells.js";
import { readEvents, type SseEvent } from "./sse_parser.js";

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
  await follow(url, init, callbacks, signal);
}

/** Follows a run from its beginning; otherwise as `streamSSE`. */
export async function connectSSE(
  url: string,
  callbacks: SSECallbacks,
  signal?: AbortSignal,
  headers: Record<string, string> = {},
): Promise<void> {
  await follow(url, { headers }, callbacks, signal);
}

async function follow(
  url: string,
  init: RequestInit,
  callbacks: SSECallbacks,
  signal?: AbortSignal,
): Promise<void> {
  let done = false;
  const finish = (error?: string) => {
    if (done || signal?.aborted) return;
    done = true;
    if (error !== undefined) guarded(callbacks.onError, error);
    guarded(callbacks.onDone);
  };
  try {
    const response = await fetch(url, {
      ...init,
      headers: { Accept: "text/event-stream", ...(init.headers as Record<string, string>) },
      ...(signal && { signal }),
    });
    if (!response.ok || response.body === null) {
      finish((await response.text()) || `HTTP ${response.status}`);
      return;
    }
    await readEvents(response.body, (event) => {
      if (done || signal?.aborted) return;
      if (event.event === "done" || event.data === "[DONE]") finish();
      else tell(event, callbacks);
    });
    finish("the stream broke off");
  } catch (error) {
    finish(error instanceof Error ? error.message : String(error));
  }
}

function tell({ event, data }: SseEvent, callbacks: SSECallbacks): void {
  let said: { [name: string]: unknown };
  try {
    said = JSON.parse(data);
  } catch {
    return; // not JSON: nothing that we know
  }
  if (typeof said !== "object" || said === null) return;
  const text = (name: string) => (typeof said[name] === "string" ? (said[name] as string) : null);
  const runId = text("run_id");
  const delta = text("delta");
  const id = text("id");
  if (event === "run_id" && runId !== null) guarded(callbacks.onRunId, runId);
  else if (event === "step") guarded(callbacks.onStep, said as unknown as StepEvent);
  else if (event === "result") guarded(callbacks.onResult, said);
  else if (event === "error") guarded(callbacks.onError, text("error") ?? "Unknown error");
  else if (event === "tool_start") guarded(callbacks.onToolStart, said as unknown as ToolEvent);
  else if (event === "tool_end") guarded(callbacks.onToolEnd, said as unknown as ToolEvent);
  else if (event === "tool_render") guarded(callbacks.onToolRender, said as unknown as ToolRenderEvent);
  else if (event === "tool_remove" && id !== null) guarded(callbacks.onToolRemove, id);
  else if (delta !== null && (event === "delta" || event === "message")) guarded(callbacks.onDelta, delta);
}
