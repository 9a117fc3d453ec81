/** Reader of the draft's workflow stream; see `stream_sse.ts`. */

import { guarded } from "../client/cells.js";
import type { StepEvent, ToolRenderEvent } from "../protocol/draft_types.js";
import { parseJson } from "../protocol/exact_json.js";
import { readEvents, type SseEvent } from "../transport/sse_parser.js";

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
  /** Called once when the stream has ended, also after an error. */
  onDone?: () => void;
  onToolStart?: (event: ToolEvent) => void;
  onToolEnd?: (event: ToolEvent) => void;
  onToolRender?: (event: ToolRenderEvent & { id?: string }) => void;
  /** Called when a rendered component is removed. */
  onToolRemove?: (id: string) => void;
}

/** Send a request and report the events of its stream. */
export async function follow(
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
      else notify(event, callbacks);
    });
    finish("the stream broke off");
  } catch (error) {
    finish(error instanceof Error ? error.message : String(error));
  }
}

function notify({ event, data }: SseEvent, callbacks: SSECallbacks): void {
  let payload: { [name: string]: unknown };
  try {
    payload = parseJson(data) as typeof payload;
  } catch {
    return; // an event that is not JSON is not part of this stream's format
  }
  if (typeof payload !== "object" || payload === null) return;
  const { run_id: runId, delta, error, id } = payload;
  if (event === "delta" || event === "message") {
    if (typeof delta === "string") guarded(callbacks.onDelta, delta);
  } else if (event === "run_id") guarded(callbacks.onRunId, String(runId));
  else if (event === "error") guarded(callbacks.onError, String(error ?? payload.message ?? "unknown error"));
  else if (event === "tool_remove") guarded(callbacks.onToolRemove, String(id));
  else guarded(callbacks[WHOLE.get(event) as "onResult"], payload);
}

/** Events that pass their whole data to a callback. */
const WHOLE = new Map<string, keyof SSECallbacks>([
  ["step", "onStep"],
  ["result", "onResult"],
  ["tool_start", "onToolStart"],
  ["tool_end", "onToolEnd"],
  ["tool_render", "onToolRender"],
]);
