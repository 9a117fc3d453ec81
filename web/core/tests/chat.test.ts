/** Cells for chat hooks: messages of user and assistant, tool calls, whether an answer is being written. */

import { beforeEach, expect, test } from "vitest";
import {
  ChatView,
  drawingProps,
  isClosed,
  messagesOf,
  storyOf,
  toolTitle,
  turnOf,
  type ChatMessage,
} from "../src/chat.js";
import { ArpClient, type TurnState } from "../src/index.js";
import { delta, FakeSocket, message, text } from "./fakes.js";

let now = 0;

async function opened(session: object = {}): Promise<[ArpClient, FakeSocket, ChatView]> {
  const options = { url: "http://agent.example", storage: null, WebSocket: FakeSocket as never };
  const client = new ArpClient({ ...options, schedule: (flush) => flush() });
  const view = new ChatView(client, () => now);
  client.connect();
  await Promise.resolve();
  FakeSocket.last.welcome(session);
  view.messages.get();
  return [client, FakeSocket.last, view];
}

const input = (seq: number, sentTexts: string, id = "i1") =>
  message("input", seq, { input_type: "text", data: { text: sentTexts }, id });
const turn = (seq: number, status: string) => message("turn", seq, { status });
const received = ({ role, content }: ChatMessage) => `${role}: ${content}`;

beforeEach(() => {
  now = 0;
  FakeSocket.reset();
});

test("inputs and answers are in order, and unsent messages follow them", async () => {
  const [client, socket, view] = await opened();
  socket.notify(
    input(1, "Sales?"),
    turn(2, "running"),
    delta("Here ", 3),
    message("render", null, { components: [{ id: "a", type: "table", props: { headers: [], rows: [] } }] }),
    message("commit", 4),
    delta("they are.", 5),
    message("commit", 6, { final: true }),
    turn(7, "completed"),
  );
  client.sendText("Thanks");
  const messages = view.messages.get();
  expect(messages.map(received)).toEqual(["user: Sales?", "assistant: Here they are.", "user: Thanks"]);
  const [requested, answered, next] = messages as [ChatMessage, ChatMessage, ChatMessage];
  expect([requested.id, requested.turnId, next.turnId, next.sending]).toEqual(["i1", "t1", null, "sent"]);
  expect(answered.parts.map(({ kind }) => kind)).toEqual(["text", "component", "text"]);
  expect(answered.uiEvents).toEqual([{ tool: "", component: "table", props: { headers: [], rows: [] } }]);
  expect([answered.status, answered.restored]).toEqual(["completed", undefined]);
});

test("inputs and answers have their times, if the agent side sends them", async () => {
  const [, socket, view] = await opened();
  const requested = { input_type: "text", data: { text: "Hi" }, id: "i1", at: "2026-11-21T12:00:00.000Z" };
  socket.notify(message("input", 1, requested), turn(2, "running"), delta("Hello", 3));
  const times = () => view.messages.get().map(({ at }) => at);
  expect(times()).toEqual([requested.at, undefined]);
  socket.notify(message("commit", 4, { final: true, at: "2026-11-21T12:00:09.000Z" }), turn(5, "completed"));
  expect(times()).toEqual([requested.at, "2026-11-21T12:00:09.000Z"]);
  const [sentTexts, answered] = view.messages.get() as [ChatMessage, ChatMessage];
  expect([turnOf(sentTexts).inputs[0]?.at, turnOf(answered).at]).toEqual(times());
});

test("a message is the same object until something in it changes", async () => {
  const [, socket, view] = await opened();
  socket.notify(input(1, "Hi"), turn(2, "running"), delta("a", 3));
  const before = view.messages.get();
  expect(view.messages.get()).toBe(before);
  socket.notify(delta("b", 4));
  const after = view.messages.get();
  expect(after).not.toBe(before);
  expect([after[0] === before[0], after[1] === before[1], after[1]?.content]).toEqual([true, false, "ab"]);
});

test("the echo of an input has the id of the outgoing message", async () => {
  const [client, socket, view] = await opened();
  const id = client.sendText("Hi");
  expect(view.messages.get().map((one) => [one.id, one.sending])).toEqual([[id, "sent"]]);
  socket.notify(input(1, "Hi", id));
  expect(view.messages.get().map((one) => [one.id, one.sending])).toEqual([[id, undefined]]);
});

test("an answer without text is an empty message while its turn runs", async () => {
  const [client, socket, view] = await opened();
  expect(view.isStreaming.get()).toBe(false);
  client.sendText("Hi", { id: "i1" });
  expect(view.isStreaming.get()).toBe(true);
  socket.notify(input(1, "Hi"), turn(2, "running"));
  const [, waiting] = view.messages.get();
  expect([waiting?.role, waiting?.content, view.isStreaming.get()]).toEqual(["assistant", "", true]);
  socket.notify(delta("Hello", 3), message("commit", 4, { final: true }), turn(5, "completed"));
  expect(view.messages.get()[1]).toMatchObject({ id: waiting?.id, content: "Hello" });
  expect(view.isStreaming.get()).toBe(false);
});

test("a message that waits for a connection does not count as streaming", async () => {
  const [client, socket, view] = await opened();
  socket.close(1006);
  client.sendText("Hi");
  expect([view.isStreaming.get(), view.messages.get()[0]?.sending]).toEqual([false, "waiting"]);
});

test("an answer to a component is not a message; a text sent meanwhile is", async () => {
  const [, socket, view] = await opened();
  socket.notify(
    input(1, "Go"),
    message("render", null, { components: [{ id: "c", type: "confirm", props: { title: "Sure?" } }] }),
    message("commit", 2),
    message("input", 3, { input_type: "action", data: { action: "confirm" }, source_component: "c", id: "i2" }),
    input(4, "And quickly", "i3"),
    delta("Done", 5),
  );
  expect(view.messages.get().map(received)).toEqual([
    "user: Go",
    "assistant: ",
    "user: And quickly",
    "assistant: Done",
  ]);
});

test("an error is a separate message", async () => {
  const [, socket, view] = await opened();
  socket.notify(input(1, "Go"), delta("Well", 2), message("error", 3, { payload: { error: "broken", code: 18 } }));
  const messages = view.messages.get();
  expect(messages.map(received)).toEqual(["user: Go", "assistant: Well", "assistant: broken"]);
  expect(messages[2]?.error?.code).toBe(18);
});

test("messages that exist when the session is opened are marked as restored", async () => {
  const [, socket, view] = await opened({ resume: "snapshot", seq: 3 });
  socket.notify(
    input(1, "Before"),
    message("render", null, { components: [text("t1/1", "Old")] }),
    message("commit", 3, { final: true }),
  );
  view.messages.get();
  socket.notify(
    { ...input(4, "Now", "i4"), turn_id: "t2" },
    { ...delta("New", 5), turn_id: "t2" },
    { ...message("commit", 6, { final: true }), turn_id: "t2" },
  );
  expect(view.messages.get().map(({ content, restored = false }) => [content, restored])).toEqual([
    ["Before", true],
    ["Old", true],
    ["Now", false],
    ["New", false],
  ]);
});

test("the files of a message are named, before and after its echo", async () => {
  const [client, socket, view] = await opened();
  client.sendText("See", { files: [new File(["x"], "a.csv")] });
  expect(view.messages.get()[0]).toMatchObject({ content: "See", file: "a.csv" });
  const files = [
    { id: "f", name: "b.csv" },
    { id: "g", name: "c.csv" },
  ];
  socket.notify(message("input", 1, { input_type: "file", data: { files, text: "Both" }, id: "i" }));
  expect(view.messages.get()[0]).toMatchObject({ content: "Both", file: "b.csv, c.csv", turnId: "t1" });
});

test("tool calls are distinguished by their ids, and each has its duration", async () => {
  const [, socket, view] = await opened();
  const start = (call_id: string, seq: number) =>
    message("tool_start", seq, { payload: { tool: "read_file", args: "{}", call_id } });
  const end = (call_id: string, ok: boolean, seq: number) =>
    message("tool_end", seq, { payload: { tool: "read_file", ok, call_id } });
  socket.notify(input(1, "Go"), start("a", 2), start("b", 3));
  expect(view.tools.get().map(({ status }) => status)).toEqual(["running", "running"]);
  now = 1500;
  socket.notify(end("b", false, 4));
  const cards = view.tools.get();
  expect(cards.map(({ displayName, status, elapsed }) => [displayName, status, elapsed])).toEqual([
    ["Read File", "running", undefined],
    ["Read File", "failed", "1.5s"],
  ]);
  expect(view.tools.get()).toBe(cards);
});

test("a card has the progress while the tool runs, then the result and the duration that the agent side sends", async () => {
  const [, socket, view] = await opened();
  socket.notify(
    input(1, "Go"),
    message("tool_start", 2, { payload: { tool: "load", args: "{}", call_id: "a" } }),
    message("tool_progress", 3, { payload: { call_id: "a", text: "reading" } }),
  );
  expect(view.tools.get()[0]).toMatchObject({ status: "running", run: { progress: { text: "reading" } } });
  now = 9000;
  socket.notify(
    message("tool_end", 4, { payload: { tool: "load", ok: true, call_id: "a", result: "42", duration_ms: 1200 } }),
  );
  expect(view.tools.get()[0]).toEqual({
    name: "load",
    displayName: "Load",
    status: "done",
    startTime: expect.any(Number),
    callId: "a",
    elapsed: "1.2s",
    run: { callId: "a", tool: "load", args: "{}", ok: true, error: null, result: "42", durationMs: 1200 },
  });
});

test("another session brings its own messages", async () => {
  const [client, socket, view] = await opened();
  socket.notify(input(1, "Hi"));
  expect(view.messages.get()).toHaveLength(1);
  client.setSessionId("other");
  expect(view.messages.get()).toEqual([]);
});

test("subscribers are notified together with those of the store", async () => {
  const [, socket, view] = await opened();
  let receivedEvents = 0;
  const stop = view.messages.subscribe(() => (receivedEvents += 1));
  socket.notify(input(1, "Hi"));
  expect(receivedEvents).toBeGreaterThan(0);
  stop();
  const before = receivedEvents;
  socket.notify(delta("a", 2));
  expect(receivedEvents).toBe(before);
});

test("an agent's props cannot be handlers, markup or names with a meaning in a framework", () => {
  const props = JSON.parse(
    '{"title": "T", "style": "list", "onClick": "x", "onclick": "x", "innerHTML": "<b>", "dangerouslySetInnerHTML": {"__html": "x"},' +
      '"ref": "r", "key": "k", "is": "x", "class": "c", "__proto__": {"polluted": 1}, "children": ["x"]}',
  );
  expect(drawingProps({ id: "a", type: "x-a", props })).toEqual({ title: "T", style: "list" });
  expect(drawingProps({ id: "a", type: "x-a", props: { style: { position: "fixed" } } })).toEqual({});
});

test("a message converted to a turn has the same story", async () => {
  const [, socket, view] = await opened();
  socket.notify(
    input(1, "Sales?"),
    message("tool_start", 2, { payload: { tool: "query", args: "{}", call_id: "a" } }),
    delta("Here ", 3),
    message("render", null, { components: [{ id: "a", type: "image", props: { src: "/a.png", alt: "A" } }] }),
    message("commit", 4),
    delta("it is.", 5),
  );
  const [requested, answered] = view.messages.get() as [ChatMessage, ChatMessage];
  const received = (turn: TurnState) => storyOf(turn).map(({ kind, text }) => text || kind);
  expect(received(turnOf(requested))).toEqual(["input"]);
  expect(received(turnOf(answered))).toEqual(["tool", "Here ", "component", "it is."]);
  expect(messagesOf(turnOf(answered), false).map(({ content }) => content)).toEqual(["Here it is."]);
});

test("a turn begun by a program names its origin, and without a text it has no user message", async () => {
  const [, socket, view] = await opened();
  const pushed = { turn_id: "t1", origin: "monitor", input_type: "text", data: { text: "Disk full" } };
  socket.notify(message("input", 1, pushed), delta("Soon.", 2));
  const [said] = view.messages.get() as [ChatMessage];
  expect([said.role, said.content, said.origin]).toEqual(["user", "Disk full", "monitor"]);
  const event = { turn_id: "t9", origin: "monitor", input_type: "event", data: { n: 1 } };
  socket.notify(message("input", 3, event), message("turn", 4, { turn_id: "t9", status: "running" }));
  expect(view.messages.get().filter(({ role }) => role === "user")).toHaveLength(1);
});

test("a message of the draft is its text, followed by its components", () => {
  const event = { tool: "", component: "table", props: { headers: [] } };
  const { output } = turnOf({ role: "assistant", content: "See", uiEvents: [event] });
  expect(output.map(({ type, props }) => [type, props])).toEqual([
    ["text", { content: "See" }],
    ["table", { headers: [] }],
  ]);
});

test("a question is closed when it is answered; other components never are", () => {
  expect(isClosed({ id: "a", type: "confirm", props: {} })).toBe(false);
  expect(isClosed({ id: "a", type: "confirm", props: { state: "expired" } })).toBe(true);
  expect(isClosed({ id: "a", type: "table", props: { state: "answered" } })).toBe(false);
});

test("names of tools are formatted for display", () => {
  expect(["render_sales_chart", "query", "a__b"].map(toolTitle)).toEqual(["Sales Chart", "Query", "A B"]);
});

test("listeners hear only of what their cell is made from", async () => {
  const [client, socket, view] = await opened();
  socket.notify(input(1, "Sales?"), turn(2, "running"), message("tool_start", 3, { tool: "sql", call_id: "c" }));
  const heard: string[] = [];
  view.messages.subscribe(() => heard.push("messages"));
  view.tools.subscribe(() => heard.push("tools"));
  view.isStreaming.subscribe(() => heard.push("isStreaming"));
  socket.notify(
    { ...message("render", null, { components: [text("a", "A")] }), surface: "side" },
    message("commit", 4),
  );
  expect(heard).toEqual([]);
  socket.notify(delta("Here", 5));
  expect(heard).toEqual(["messages"]);
  heard.length = 0;
  socket.notify(message("tool_end", 6, { call_id: "c", ok: true }));
  expect(heard).toContain("tools");
  heard.length = 0;
  client.stop();
  socket.notify(message("commit", 7, { final: true }), turn(8, "completed"));
  expect(heard).toContain("isStreaming");
});
