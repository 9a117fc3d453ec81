import { afterEach, expect, test, vi } from "vitest";
import { connectSSE, streamSSE, type SSECallbacks } from "../src/index.js";

/** Every callback, told into one list. */
function listening(heard: unknown[]): SSECallbacks {
  const names = [
    ...["onRunId", "onStep", "onDelta", "onResult", "onError", "onDone"],
    ...["onToolStart", "onToolEnd", "onToolRender", "onToolRemove"],
  ];
  return Object.fromEntries(names.map((name) => [name, (...told: unknown[]) => heard.push([name, ...told])]));
}

function answering(body: string, init: ResponseInit = {}) {
  const asked = vi.fn(async (_url: string, _init: RequestInit) => new Response(body, init));
  vi.stubGlobal("fetch", asked);
  return asked;
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
  const asked = answering(STREAM);
  const heard: unknown[] = [];
  await streamSSE("/chat", { message: "Hi" }, listening(heard), { headers: { "X-A": "1" } });
  expect(heard).toEqual([
    ["onRunId", "r1"],
    ["onToolStart", { tool: "look", args: "{}" }],
    ["onToolRender", { tool: "look", component: "table", props: { headers: [] }, id: "t" }],
    ["onToolRemove", "t"],
    ["onToolEnd", { tool: "look", ok: true }],
    ["onDelta", "Hi"],
    ["onDelta", " there"],
    ["onDone"],
  ]);
  const [url, init] = asked.mock.calls[0] as [string, RequestInit];
  expect(url).toBe("/chat");
  expect(init).toMatchObject({
    method: "POST",
    body: '{"message":"Hi"}',
    headers: { Accept: "text/event-stream", "Content-Type": "application/json", "X-A": "1" },
  });
});

test("a form is sent as it is", async () => {
  const asked = answering("data: [DONE]\n\n");
  const formData = new FormData();
  await streamSSE("/chat", null, {}, { formData });
  const init = asked.mock.calls[0]?.[1] as RequestInit;
  expect(init.body).toBe(formData);
  expect(init.headers).not.toHaveProperty("Content-Type");
});

test("a stream that breaks off is an error, and over", async () => {
  answering('data: {"delta": "Hi"}\n\n');
  const heard: unknown[] = [];
  await connectSSE("/runs/1", listening(heard));
  expect(heard).toEqual([["onDelta", "Hi"], ["onError", "the stream broke off"], ["onDone"]]);
});

test("a refusal and a dead network are errors, and over", async () => {
  const heard: unknown[] = [];
  answering("no such agent", { status: 404 });
  await streamSSE("/chat", {}, listening(heard));
  answering("", { status: 500 });
  await connectSSE("/chat", listening(heard));
  vi.stubGlobal("fetch", () => Promise.reject(new TypeError("dead")));
  await connectSSE("/chat", listening(heard));
  expect(heard).toEqual([
    ["onError", "no such agent"],
    ["onDone"],
    ["onError", "HTTP 500"],
    ["onDone"],
    ["onError", "dead"],
    ["onDone"],
  ]);
});

test("who aborts hears nothing more", async () => {
  const abort = new AbortController();
  const heard: unknown[] = [];
  vi.stubGlobal("fetch", async () => {
    abort.abort();
    throw new DOMException("aborted", "AbortError");
  });
  await streamSSE("/chat", {}, listening(heard), { signal: abort.signal });
  expect(heard).toEqual([]);
});

test("a callback that throws is reported and ends nothing", async () => {
  const report = vi.fn();
  vi.stubGlobal("reportError", report);
  answering('data: {"delta": "a"}\n\ndata: {"delta": "b"}\n\ndata: [DONE]\n\n');
  const heard: string[] = [];
  await connectSSE("/chat", {
    onDelta(text) {
      heard.push(text);
      throw new Error("theirs");
    },
    onDone: () => heard.push("done"),
  });
  expect(heard).toEqual(["a", "b", "done"]);
  expect(report).toHaveBeenCalledTimes(2);
});
