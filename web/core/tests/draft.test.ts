/** Code as it was written for the draft's package, with its name swapped (W82). */

import { expect, test } from "vitest";
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
import { delta, FakeSocket, HELLO, message, text } from "./fakes.js";

test("both forms of the constructor, and every callback", async () => {
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

test("a server of the draft answers no hello, and is talked to all the same", async () => {
  const received: string[] = [];
  const client = new ArpClient(
    { url: "ws://agent.example/_arp/v1", sessionId: "s", WebSocket: FakeSocket as never },
    { onConnect: () => received.push("connect"), onDelta: (sent) => received.push(sent), onDone: () => received.push("done") },
  );
  client.connect();
  await Promise.resolve();
  const socket = FakeSocket.last;
  socket.onopen?.();
  socket.notify({ ...HELLO, capabilities: { components: ["text"], features: ["streaming"] } });
  client.sendText("Hi");
  expect(socket.of("input")).toMatchObject([{ session_id: "s", data: { text: "Hi" } }]);
  expect(client.store.outgoing.get()).toEqual([]);
  socket.notify(
    { v: 1, type: "delta", session_id: "s", payload: { delta: "Hello" } },
    { v: 1, type: "commit", session_id: "s", final: true },
  );
  expect(received).toEqual(["connect", "Hello", "done"]);
  client.disconnect();
});

test("registry, constants and helpers", () => {
  const registry: ComponentRegistry<string> = createComponentRegistry({ table: "Table" });
  registry.register("chart", "Chart");
  expect([registry.get("table"), registry.has("diff"), registry.list()]).toEqual(["Table", false, ["table", "chart"]]);
  registry.unregister("table");
  expect(registry.get("table")).toBeUndefined();
  expect([ARP_VERSION, ArpMessageType.ToolStart]).toEqual([1, "tool_start"]);
  const known: readonly BuiltInComponentType[] = BUILT_IN_COMPONENTS;
  expect(known).toHaveLength(18);
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

test("types of props and of history are what they were", () => {
  const table: TableProps = { headers: ["a"], rows: [["1"]], highlight: [0] };
  const chart: ChartProps = { type: "bar", labels: ["a"], datasets: [{ label: "S", data: [1] }] };
  const form: FormViewProps = { fields: [{ name: "n", options: ["x"] }] };
  const sent: ChatMessage = { role: "user", content: "Hi", timestamp: "" };
  expect([table.rows[0]?.[0]?.toUpperCase(), chart.type, form.fields[0]?.name, sent.role]).toEqual(["1", "bar", "n", "user"]);
});

test("functions take what they took", () => {
  const calls: SSECallbacks = { onDelta: (delta: string) => delta, onDone: () => undefined };
  const options: StreamSSEOptions = { headers: { A: "b" }, signal: new AbortController().signal };
  const post: Promise<void> = streamSSE("http://127.0.0.1:1/", { message: "x" }, calls, options);
  const get: Promise<void> = connectSSE("http://127.0.0.1:1/", calls, options.signal);
  const api: SessionAPI = createSessionAPI("http://127.0.0.1:1");
  const workflows: Promise<WorkflowInfo[]> = api.listWorkflows();
  return Promise.all([post, get, workflows]);
});
