/** Code for the draft's package, with the package name changed (W82). */

import { readdirSync } from "node:fs";
import { expect, test, vi } from "vitest";
import {
  ARP_VERSION,
  ArpClient,
  arpMessageToToolRenderEvent,
  ArpMessageType,
  BUILT_IN_COMPONENTS,
  connectSSE,
  createComponentRegistry,
  createSessionAPI,
  streamSSE,
  type ArpCapabilities,
  type ArpClientCallbacks,
  type ArpClientOptions,
  type ArpMessage,
  type BuiltInComponentType,
  type ChartProps,
  type ChatMessage,
  type ComponentRegistry,
  type FormViewProps,
  type SessionAPI,
  type SSECallbacks,
  type StreamSSEOptions,
  type TableProps,
  type ToolRenderEvent,
  type WorkflowInfo,
} from "../src/index.js";
import { delta, FakeSocket, message, SESSION, text } from "./fakes.js";

const SCHEMAS = readdirSync(new URL("../../../schemas/components/", import.meta.url));

test("both forms of the constructor and every callback work", async () => {
  const received: string[] = [];
  const callbacks: ArpClientCallbacks = {
    onConnect: (caps: ArpCapabilities) => received.push(`connect ${caps.components.join()}`),
    onDisconnect: () => received.push("disconnect"),
    onDelta: (sent: string) => received.push(`delta ${sent}`),
    onToolStart: (tool: string, args: string) => received.push(`start ${tool} ${args}`),
    onToolEnd: (tool: string, ok: boolean) => received.push(`end ${tool} ${ok}`),
    onRender: (event: ToolRenderEvent) => received.push(`render ${event.component}`),
    onError: (error: string) => received.push(`error ${error}`),
    onDone: () => received.push("done"),
  };
  const options: ArpClientOptions = {
    url: "ws://agent.example/_arp/v1",
    sessionId: "s",
    maxReconnectAttempts: 5,
    WebSocket: FakeSocket as unknown as new (url: string) => WebSocket,
  };
  const client: ArpClient = new ArpClient(options, callbacks);
  client.connect();
  await Promise.resolve();
  const socket = FakeSocket.last;
  expect(client.connected).toBe(false);
  socket.welcome();
  expect([client.connected, client.capabilities?.components]).toEqual([true, ["text"]]);
  socket.notify(
    delta("Hi"),
    message("render", 1, { components: [text("a", "A")] }),
    message("commit", 1, { final: true }),
  );
  client.sendText("Show me the sales data");
  client.sendAction("c", "confirm", { a: 1 });
  client.sendFormSubmit({ name: "Ada" }, "register");
  client.setSessionId("other");
  client.disconnect();
  expect(received).toEqual(["connect text", "delta Hi", "render text", "done", "disconnect"]);
  expect(socket.of("input").map(({ input_type, data }) => [input_type, data])).toEqual([
    ["text", { text: "Show me the sales data" }],
    ["action", { action: "confirm", payload: { a: 1 } }],
    ["form_submit", { fields: { name: "Ada" }, action: "register" }],
  ]);

  const short = new ArpClient("ws://agent.example/_arp/v1", { onDelta: (sent) => received.push(sent) });
  expect(short.capabilities).toBeNull();
});

const OF_DRAFT = { type: "hello", v: 1, capabilities: { components: ["text"], features: ["streaming"] } };
const NOT_KNOWN = { type: "error", v: 1, payload: { message: "unknown type: hello" } };

/** Return a client on a server of the draft that has sent its hello, and the recorded callbacks. */
async function onDraft(
  options: Partial<ArpClientOptions> = {},
): Promise<{ client: ArpClient; heard: string[]; socket: FakeSocket }> {
  const heard: string[] = [];
  const client = new ArpClient(
    { url: "ws://agent.example/_arp/v1", storage: null, WebSocket: FakeSocket as never, ...options },
    {
      onConnect: () => heard.push("connect"),
      onDelta: (sent) => heard.push(sent),
      onDone: () => heard.push("done"),
      onError: (error) => heard.push(`error ${error}`),
    },
  );
  client.connect();
  await Promise.resolve();
  FakeSocket.last.onopen?.();
  FakeSocket.last.notify(OF_DRAFT);
  return { client, heard, socket: FakeSocket.last };
}

test("a server of the draft refuses the hello, and the client still works with it", async () => {
  const { client, heard, socket } = await onDraft({ sessionId: "s" });
  const answered = client.acknowledged(client.sendText("Hi"));
  expect([client.connected, socket.of("input")]).toEqual([false, []]);
  socket.notify(NOT_KNOWN);
  expect(socket.of("input")).toMatchObject([{ session_id: "s", data: { text: "Hi" } }]);
  expect([await answered, client.store.outgoing.get(), client.store.errors.get()]).toEqual(["d1", [], []]);
  socket.notify({ v: 1, type: "delta", payload: { delta: "Hello" } });
  expect(client.store.status.get()).toMatchObject({ activeTurn: "d1", loading: false });
  socket.notify({ v: 1, type: "commit", final: true });
  expect(heard).toEqual(["connect", "Hello", "done"]);
  client.sendText("And?");
  socket.notify({ v: 1, type: "error", payload: { message: "no model" } }, { v: 1, type: "commit", final: true });
  const shown = client.store.turnIds.get().map((id) => client.store.turn(id).get());
  expect(shown.map((turn) => [turn?.status, turn?.inputs[0]?.data.text, turn?.output.length])).toEqual([
    ["completed", "Hi", 1],
    ["failed", "And?", 0],
  ]);
  expect(shown[1]?.errors).toEqual([{ message: "no model", error: "no model", code: 0 }]);
  client.disconnect();
});

test("a server that does not answer the hello counts as one of the draft after a second", async () => {
  vi.useFakeTimers();
  const { client, socket } = await onDraft();
  client.sendText("Hi");
  vi.advanceTimersByTime(999);
  expect([client.connected, socket.of("input")]).toEqual([false, []]);
  vi.advanceTimersByTime(1);
  expect(socket.of("input")).toHaveLength(1);
  expect(client.sessionId).toBe(socket.of("input")[0]?.session_id);
  socket.notify({ v: 1, type: "error", payload: {} });
  expect(client.store.turn("d1").get()?.errors).toMatchObject([{ error: "The server sent an error without a text." }]);
  client.disconnect();
  vi.useRealTimers();
});

test("a server without resume that names a session is not one of the draft", async () => {
  const { client, heard, socket } = await onDraft();
  socket.notify(SESSION);
  client.sendText("Hi");
  socket.notify(delta("Hello", 1), message("commit", 2, { final: true }));
  expect([client.store.turnIds.get(), heard]).toEqual([["t1"], ["connect", "Hello", "done"]]);
  client.disconnect();
});

test("a server without a hello ends its stream at a question, and the next input answers it", async () => {
  const { client, socket } = await onDraft({ schedule: (flush) => flush() });
  client.disconnect();
  client.connect();
  await Promise.resolve();
  const fresh = FakeSocket.last;
  fresh.onopen?.();
  fresh.notify(NOT_KNOWN);
  expect([client.connected, fresh === socket]).toEqual([true, false]);
  client.sendText("Delete it");
  const asked = { id: "q", type: "confirm", props: { title: "Sure?" } };
  fresh.notify(
    { v: 1, type: "render", components: [{ id: "g", type: "group", props: { children: [asked] } }] },
    { v: 1, type: "commit", final: true },
  );
  expect(client.store.turn("d1").get()).toMatchObject({ status: "waiting", final: true });
  client.answer(asked, true);
  expect(client.store.turn("d1").get()).toMatchObject({ status: "completed" });
  expect(client.screen.find("q")?.component.props).toEqual({ title: "Sure?", state: "answered", answer: true });
  expect(fresh.of("input").at(-1)).toMatchObject({ data: { action: "confirm" }, source_component: "q" });
  fresh.notify(
    { v: 1, type: "tool_start", payload: { tool: "rm" } },
    { v: 1, type: "tool_end", payload: { tool: "rm" } },
  );
  expect(client.store.turn("d2").get()?.tools).toMatchObject([{ tool: "rm", args: "", ok: true }]);
  fresh.close(1006);
  client.connect();
  await Promise.resolve();
  FakeSocket.last.onopen?.();
  FakeSocket.last.notify(OF_DRAFT, NOT_KNOWN, { v: 1, type: "delta", payload: { delta: "by itself" } });
  expect(client.store.turn("d2").get()).toMatchObject({ status: "failed", final: true, errors: [{ code: 0 }] });
  expect(client.store.turn("d3").get()).toMatchObject({ status: "running", inputs: [] });
  client.disconnect();
});

test("registry, constants and functions are those of the draft", () => {
  const registry: ComponentRegistry<string> = createComponentRegistry({ table: "Table" });
  registry.register("chart", "Chart");
  expect([registry.get("table"), registry.has("diff"), registry.list()]).toEqual(["Table", false, ["table", "chart"]]);
  registry.unregister("table");
  expect(registry.get("table")).toBeUndefined();
  expect([ARP_VERSION, ArpMessageType.ToolStart]).toEqual([1, "tool_start"]);
  const known: readonly BuiltInComponentType[] = BUILT_IN_COMPONENTS;
  expect(known.toSorted()).toEqual(SCHEMAS.map((file) => file.replace(".json", "")).toSorted());
  expect(known).toContain("product-cards");

  const render: ArpMessage = {
    v: 1,
    type: "render",
    tool_name: "query",
    components: [{ id: "a", type: "table", props: { headers: [] } }],
  };
  const event: ToolRenderEvent | null = arpMessageToToolRenderEvent(render);
  expect(event).toEqual({ tool: "query", component: "table", props: { headers: [] } });
  expect(arpMessageToToolRenderEvent({ v: 1, type: "delta" })).toBeNull();
});

test("types of props and history are those of the draft", () => {
  const table: TableProps = { headers: ["a"], rows: [["1"]], highlight: [0] };
  const chart: ChartProps = { type: "bar", labels: ["a"], datasets: [{ label: "S", data: [1] }] };
  const form: FormViewProps = { fields: [{ name: "n", options: ["x"] }] };
  const sent: ChatMessage = { role: "user", content: "Hi", timestamp: "" };
  expect([table.rows[0]?.[0]?.toUpperCase(), chart.type, form.fields[0]?.name, sent.role]).toEqual([
    "1",
    "bar",
    "n",
    "user",
  ]);
});

test("functions have the parameters of the draft", () => {
  const calls: SSECallbacks = { onDelta: (delta: string) => delta, onDone: () => undefined };
  const options: StreamSSEOptions = { headers: { A: "b" }, signal: new AbortController().signal };
  const post: Promise<void> = streamSSE("http://127.0.0.1:1/", { message: "x" }, calls, options);
  const get: Promise<void> = connectSSE("http://127.0.0.1:1/", calls, options.signal);
  const api: SessionAPI = createSessionAPI("http://127.0.0.1:1");
  const workflows: Promise<WorkflowInfo[]> = api.listWorkflows();
  return Promise.all([post, get, workflows]);
});
