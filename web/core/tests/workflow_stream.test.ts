import { afterEach, expect, test, vi } from "vitest";
import { connectSSE, streamSSE, type SSECallbacks } from "../src/index.js";

/** Return callbacks that record every call in one list. */
function listening(received: unknown[]): SSECallbacks {
  const names = [
    ...["onRunId", "onStep", "onDelta", "onResult", "onError", "onDone"],
    ...["onToolStart", "onToolEnd", "onToolRender", "onToolRemove"],
  ];
  return Object.fromEntries(
    names.map((name) => [name, (...receivedEvents: unknown[]) => received.push([name, ...receivedEvents])]),
  );
}

function answering(body: string, init: ResponseInit = {}) {
  const requested = vi.fn(async (_url: string, _init: RequestInit) => new Response(body, init));
  vi.stubGlobal("fetch", requested);
  return requested;
}

afterEach(() => {
  vi.unstubAllGlobals();
});

const STREAM = `event: run_id
data: {"run_id": "r1"}

event: tool_start
data: {"tool": "look", "args": "{}"}

event: tool_render
data: {"tool": "look", "component": "table", "props": {"headers": []}, "id": "t"}

event: tool_remove
data: {"id": "t"}

event: tool_end
data: {"tool": "look", "ok": true}

event: delta
data: {"delta": "Hi"}

data: {"delta": " there"}

data: not json

event: news
data: {"delta": "of an event that nobody knows"}

event: done
data: [DONE]

event: delta
data: {"delta": "behind the end"}

`;

test("every event of the draft reaches its callback, in order", async () => {
  const requested = answering(STREAM);
  const received: unknown[] = [];
  await streamSSE("/chat", { message: "Hi" }, listening(received), { headers: { "X-A": "1" } });
  expect(received).toEqual([
    ["onRunId", "r1"],
    ["onToolStart", { tool: "look", args: "{}" }],
    ["onToolRender", { tool: "look", component: "table", props: { headers: [] }, id: "t" }],
    ["onToolRemove", "t"],
    ["onToolEnd", { tool: "look", ok: true }],
    ["onDelta", "Hi"],
    ["onDelta", " there"],
    ["onDone"],
  ]);
  const [url, init] = requested.mock.calls[0] as [string, RequestInit];
  expect(url).toBe("/chat");
  expect(init).toMatchObject({
    method: "POST",
    body: '{"message":"Hi"}',
    headers: { Accept: "text/event-stream", "Content-Type": "application/json", "X-A": "1" },
  });
});

test("a form is sent unchanged", async () => {
  const requested = answering("data: [DONE]\n\n");
  const formData = new FormData();
  await streamSSE("/chat", null, {}, { formData });
  const init = requested.mock.calls[0]?.[1] as RequestInit;
  expect(init.body).toBe(formData);
  expect(init.headers).not.toHaveProperty("Content-Type");
});

test("a stream that breaks off reports an error and the end", async () => {
  answering('data: {"delta": "Hi"}\n\n');
  const received: unknown[] = [];
  await connectSSE("/runs/1", listening(received));
  expect(received).toEqual([["onDelta", "Hi"], ["onError", "the stream broke off"], ["onDone"]]);
});

test("a refusal and a failed network report an error and the end", async () => {
  const received: unknown[] = [];
  answering("no such agent", { status: 404 });
  await streamSSE("/chat", {}, listening(received));
  answering("", { status: 500 });
  await connectSSE("/chat", listening(received));
  vi.stubGlobal("fetch", () => Promise.reject(new TypeError("dead")));
  await connectSSE("/chat", listening(received));
  expect(received).toEqual([
    ["onError", "no such agent"],
    ["onDone"],
    ["onError", "HTTP 500"],
    ["onDone"],
    ["onError", "dead"],
    ["onDone"],
  ]);
});

test("after an abort nothing more is reported", async () => {
  const abort = new AbortController();
  const received: unknown[] = [];
  vi.stubGlobal("fetch", async () => {
    abort.abort();
    throw new DOMException("aborted", "AbortError");
  });
  await streamSSE("/chat", {}, listening(received), { signal: abort.signal });
  expect(received).toEqual([]);
});

test("a callback that throws is reported, and the stream continues", async () => {
  const report = vi.fn();
  vi.stubGlobal("reportError", report);
  answering('data: {"delta": "a"}\n\ndata: {"delta": "b"}\n\ndata: [DONE]\n\n');
  const received: string[] = [];
  await connectSSE("/chat", {
    onDelta(text) {
      received.push(text);
      throw new Error("theirs");
    },
    onDone: () => received.push("done"),
  });
  expect(received).toEqual(["a", "b", "done"]);
  expect(report).toHaveBeenCalledTimes(2);
});
