import { beforeEach, expect, test, vi } from "vitest";
import { ArpClient, isTextPart, type ArpClientCallbacks, type TurnState } from "../src/index.js";
import { nextFrame } from "../src/client/cells.js";
import { delta, FakeSocket, message, SESSION, text } from "./fakes.js";

let flushes: (() => void)[] = [];

function frame(): void {
  for (const flush of flushes.splice(0)) flush();
}

/** Return a client with animation frames that the test triggers. */
async function online(callbacks: ArpClientCallbacks = {}): Promise<[ArpClient, FakeSocket]> {
  const options = { url: "http://agent.example", storage: null, WebSocket: FakeSocket as never };
  const client = new ArpClient({ ...options, schedule: (flush) => flushes.push(flush) }, callbacks);
  client.connect();
  await Promise.resolve();
  FakeSocket.last.welcome();
  frame();
  return [client, FakeSocket.last];
}

function commit(socket: FakeSocket, seq: number, ...before: object[]): void {
  socket.notify(...before, message("commit", seq));
}

const render = (...components: object[]) => message("render", null, { components });
const turn = (client: ArpClient) => client.store.turn("t1").get() as TurnState;

beforeEach(() => {
  flushes = [];
  FakeSocket.reset();
});

test("subscribers are notified once per commit and see all of it", async () => {
  const [client, socket] = await online();
  const seen: unknown[] = [];
  const cell = client.store.turn("t1");
  cell.subscribe(() => seen.push(cell.get()?.output.map(({ id }) => id)));
  commit(socket, 1, render(text("a", "A"), text("b", "B")), render(text("c", "C")));
  frame();
  expect(seen).toEqual([["a", "b", "c"]]);
});

test("nothing of a commit is shown before all of it has arrived", async () => {
  const [client, socket] = await online();
  const cell = client.store.turn("t1");
  let received = 0;
  cell.subscribe(() => (received += 1));
  socket.notify(render(text("a", "A")));
  frame();
  expect([received, cell.get()]).toEqual([0, undefined]);
  commit(socket, 1);
  frame();
  expect([received, turn(client).output]).toEqual([1, [text("a", "A")]]);
});

test("deltas between two frames are reported together", async () => {
  const [client, socket] = await online();
  const seen: unknown[] = [];
  client.store.turn("t1").subscribe(() => seen.push(turn(client).output[0]?.props.content));
  for (let count = 0; count < 1000; count += 1) socket.notify(delta("x"));
  frame();
  socket.notify(delta("y"));
  frame();
  expect(seen).toEqual(["x".repeat(1000), `${"x".repeat(1000)}y`]);
});

test("unchanged values are the same objects", async () => {
  const [client, socket] = await online();
  commit(socket, 1, render(text("a", "A"), text("b", "B")));
  socket.notify(delta("elsewhere", null), { ...message("turn", 2, { status: "running" }), turn_id: "t2" });
  const before = turn(client);
  const other = client.store.turn("t2").get();
  const op = { op: "update", target: "b", path: "props.content", value: "Z" };
  commit(socket, 3, message("patch", null, { ops: [op] }));
  const after = turn(client);
  expect(after).not.toBe(before);
  expect(after.output[0]).toBe(before.output[0]);
  expect(after.output[1]).not.toBe(before.output[1]);
  expect(after.tools).toBe(before.tools);
  expect(client.store.turn("t2").get()).toBe(other);
  expect(turn(client)).toBe(after);
});

test("a patch of a nested component renews its ancestors and nothing else", async () => {
  const [client, socket] = await online();
  const group = { id: "g", type: "group", props: { children: [text("a", "A"), text("b", "B")] } };
  commit(socket, 1, render(group, text("c", "C")));
  const [before, beside] = turn(client).output;
  const op = { op: "append", target: "a", path: "props.content", value: "!" };
  commit(socket, 2, message("patch", null, { ops: [op] }));
  const [after, same] = turn(client).output;
  expect(after?.props.children).toEqual([text("a", "A!"), text("b", "B")]);
  expect(after).not.toBe(before);
  expect((after?.props.children as unknown[])[1]).toBe((before?.props.children as unknown[])[1]);
  expect(same).toBe(beside);
});

test("a message view is only notified of its own turn", async () => {
  const [client, socket] = await online();
  let received = 0;
  client.store.turn("t1").subscribe(() => (received += 1));
  socket.notify({ ...message("turn", 1, { status: "running" }), turn_id: "t2" });
  frame();
  expect(received).toBe(0);
});

test("turnIds changes with new turns, not with their text", async () => {
  const [client, socket] = await online();
  socket.notify(delta("x"));
  const ids = client.store.turnIds.get();
  socket.notify(delta("y"));
  expect(client.store.turnIds.get()).toBe(ids);
  expect(ids).toEqual(["t1"]);
});

test("a turn has the time of its end, and the status has the number of turns before a snapshot", async () => {
  const [client, socket] = await online();
  const at = "2026-11-21T08:00:00Z";
  commit(socket, 1, render(text("a", "A")));
  expect([turn(client).at, client.store.status.get().older]).toEqual([undefined, undefined]);
  socket.notify(message("commit", 2, { final: true, at }), message("commit", 3));
  frame();
  expect([turn(client).final, turn(client).at]).toEqual([true, at]);
  socket.notify(
    { ...SESSION, seq: 9, resume: "snapshot", older: 7 },
    message("commit", null, { final: true, at }),
    message("commit", 9),
  );
  frame();
  expect([turn(client).at, client.store.status.get().older]).toEqual([at, 7]);
  socket.notify({ ...SESSION, seq: 9, resume: "replay" });
  expect(client.store.status.get().older).toBe(7); // the screen is still the same
});

test("a snapshot takes effect as one change", async () => {
  const [client, socket] = await online();
  socket.notify(delta("old"));
  frame();
  const seen: string[] = [];
  client.store.subscribe(() => seen.push(client.store.turnIds.get().join()));
  socket.notify({ type: "session", v: 1, session_id: "s", epoch: "f", seq: 9, resume: "snapshot" });
  expect(client.store.status.get().loading).toBe(true);
  const other = (fields: object) => ({ ...fields, turn_id: "t7" });
  socket.notify(other(render(text("t7/1", "new"))), other(message("commit", null)));
  frame();
  expect(client.store.turnIds.get()).toEqual(["t1"]);
  socket.notify({ type: "commit", v: 1, session_id: "s", seq: 9 });
  frame();
  expect(client.store.turnIds.get()).toEqual(["t7"]);
  expect(client.store.turn("t1").get()).toBeUndefined();
  expect(client.store.status.get().loading).toBe(false);
  expect(seen.at(-1)).toBe("t7");
});

test("a listener that throws is reported and stops no other", async () => {
  const report = vi.fn();
  vi.stubGlobal("reportError", report);
  try {
    const [client, socket] = await online({
      onDelta: () => {
        throw new Error("theirs");
      },
    });
    let received = 0;
    client.store.turn("t1").subscribe(() => {
      throw new Error("mine");
    });
    client.store.turn("t1").subscribe(() => (received += 1));
    socket.notify(delta("x"));
    frame();
    expect(received).toBe(1);
    expect(report.mock.calls.map(([error]) => (error as Error).message)).toEqual(["theirs", "mine"]);
  } finally {
    vi.unstubAllGlobals();
  }
});

test("a removed listener is not called and leaves nothing behind", async () => {
  const [client, socket] = await online();
  let received = 0;
  const stop = client.store.turn("t1").subscribe(() => (received += 1));
  stop();
  stop();
  socket.notify(delta("x"));
  frame();
  expect(received).toBe(0);
});

test("a turn that was cut off while it waited is not active: its final commit has come", async () => {
  const [client, socket] = await online();
  socket.notify(message("turn", 1, { status: "waiting" }));
  expect(client.store.status.get().activeTurn).toBe("t1");
  socket.notify(message("turn", null, { status: "waiting" }), message("commit", 2, { final: true }));
  expect(client.store.status.get().activeTurn).toBeNull();
  socket.notify(message("turn", 3, { status: "completed" }));
  frame();
  expect([turn(client).status, turn(client).final]).toEqual(["completed", true]);
});

test("activeTurn is the turn that runs or waits, not those queued after it", async () => {
  const [client, socket] = await online();
  const status = (turn_id: string, status: string) => ({ ...message("turn", null, { status }), turn_id });
  socket.notify(status("t1", "completed"), status("t2", "running"), status("t3", "queued"));
  expect(client.store.status.get().activeTurn).toBe("t2");
  socket.notify(status("t2", "failed"), status("t3", "running"));
  expect(client.store.status.get().activeTurn).toBe("t3");
  socket.notify(status("t3", "cancelled"));
  expect(client.store.status.get().activeTurn).toBeNull();
});

test("surfaces besides main have cells of their own", async () => {
  const [client, socket] = await online();
  const side = (fields: object) => ({ ...fields, surface: "side" });
  const names: unknown[] = [];
  client.store.surfaceNames.subscribe(() => names.push(client.store.surfaceNames.get()));
  commit(socket, 1, side(render(text("a", "A"))));
  frame();
  expect(names).toEqual([["side"]]);
  expect(client.store.surface("side").get()).toEqual([text("a", "A")]);
  commit(socket, 2, side(message("patch", null, { ops: [{ op: "remove", target: "a" }] })));
  frame();
  expect(names).toEqual([["side"], []]);
});

test("popups have cells of their own, and a closed popup is removed with its content", async () => {
  const [client, socket] = await online();
  const { store } = client;
  const popup = { surface: "t1-popup-1" };
  const info = { role: "popup", parent: "main", component: "orders", row: 2 };
  const names: unknown[] = [];
  store.popupNames.subscribe(() => names.push(store.popupNames.get()));
  socket.notify({ ...message("surface", null, { payload: info }), ...popup });
  frame();
  expect([store.popupNames.get(), store.surfaceInfo("t1-popup-1").get()]).toEqual([[], info]);
  commit(socket, 1, { ...render(text("a", "A")), ...popup });
  frame();
  expect([names.at(-1), store.surfaceNames.get()]).toEqual([["t1-popup-1"], []]);
  socket.notify({ ...message("surface", 2, { payload: info, closed: "timeout" }), ...popup });
  frame();
  expect(names.at(-1)).toEqual([]);
  expect([store.surface("t1-popup-1").get(), store.surfaceInfo("t1-popup-1").get()]).toEqual([[], undefined]);
});

test("a listener of permissions is called when they change, not when something else does", async () => {
  const [client, socket] = await online();
  const confirm = { id: "a", type: "confirm", props: { title: "Run it?" } };
  const permission = { component: "a", tool: "shell", call_id: "c", digest: "d" };
  const op = { op: "update", target: "a", path: "props.state", value: "answered" };
  let called = 0;
  client.store.permissions.subscribe(() => (called += 1));
  const calls = (...messages: object[]) => {
    socket.notify(...messages);
    frame();
    const since = called;
    called = 0;
    return since;
  };
  expect(calls(render(confirm), message("commit", 1), message("turn", 2, { status: "waiting", permission }))).toBe(1);
  expect(calls(delta("said by the turn that asked"))).toBe(0);
  expect(calls({ ...delta("said by another"), turn_id: "t2" })).toBe(0);
  expect(calls(message("state", 3, { state: { step: 2 } }))).toBe(0);
  expect(calls({ ...render(text("b", "B")), surface: "side" }, message("commit", 4))).toBe(0);
  client.sendText("beside it");
  expect(calls()).toBe(0);
  expect(calls(message("patch", null, { ops: [op] }), message("commit", 5))).toBe(1);
  expect(client.store.permissions.get()).toEqual([]);
});

test("the shared state has a cell", async () => {
  const [client, socket] = await online();
  socket.notify(message("state", 1, { state: { step: 2 } }));
  frame();
  expect(client.store.sharedState.get()).toEqual({ step: 2 });
});

test("closing a surface and reporting about it name the surface", async () => {
  const [client, socket] = await online();
  const id = client.closeSurface("side");
  client.tellOfSurface("side", "resize", { width: 3, height: 4 }); // the agent side of this test has no overlays
  expect(socket.sent.at(-1)).toMatchObject({
    id,
    input_type: "action",
    data: { action: "arp.close" },
    surface: "side",
  });
  socket.notify({ type: "hello", v: 1, capabilities: { components: [], features: ["resume", "overlays"] } });
  client.tellOfSurface("side", "focus");
  expect(socket.sent.at(-1)).toMatchObject({ input_type: "focus", data: {}, surface: "side" });
});

test("text is distinguished from components", async () => {
  const [client, socket] = await online();
  socket.notify(delta("said"));
  commit(socket, 1, render(text("a", "shown")));
  expect(turn(client).output.map((item) => isTextPart(item, "t1"))).toEqual([true, false]);
});

test("callbacks are called for each message, and for components at their commit", async () => {
  const received: unknown[] = [];
  const [, socket] = await online({
    onDelta: (sent) => received.push(["delta", sent]),
    onThinking: (sent) => received.push(["thinking", sent]),
    onToolStart: (...tool) => received.push(["start", ...tool]),
    onToolProgress: (...receivedEvents) => received.push(["progress", ...receivedEvents]),
    onToolEnd: (...tool) => received.push(["end", ...tool]),
    onRender: (event) => received.push(["render", event]),
    onError: (error, { code }) => received.push(["error", error, code]),
    onDone: (turnId) => received.push(["done", turnId]),
  });
  const tool = (payload: object) => ({ payload: { tool: "look", call_id: "c", ...payload } });
  socket.notify(
    message("delta", null, { payload: { delta: "hm", kind: "thinking" } }),
    delta("Hello"),
    message("tool_start", null, tool({ args: "{}" })),
    message("tool_progress", null, { payload: { call_id: "c", done: 1, total: 3 } }),
    message("tool_end", null, tool({ ok: false, error: "broke", duration_ms: 7 })),
    message("render", null, { tool_name: "look", components: [text("a", "A"), text("b", "B")] }),
    message("error", null, { payload: { error: "odd", code: 18 } }),
    message("commit", 2, { final: true }),
  );
  expect(received).toEqual([
    ["thinking", "hm"],
    ["delta", "Hello"],
    ["start", "look", "{}", "c"],
    ["progress", "c", { call_id: "c", done: 1, total: 3 }],
    ["end", "look", false, "c", "broke", { tool: "look", call_id: "c", ok: false, error: "broke", duration_ms: 7 }],
    ["error", "odd", 18],
    ["render", { tool: "look", component: "text", props: { content: "A" } }],
    ["render", { tool: "look", component: "text", props: { content: "B" } }],
    ["done", "t1"],
  ]);
});

test("a tool has its latest progress while it runs, then its result and duration", async () => {
  const [client, socket] = await online();
  const runs = () => turn(client).tools;
  const ref = `/_api/blobs/scw/${"0".repeat(64)}/load.txt`;
  socket.notify(
    message("tool_start", null, { payload: { tool: "load", args: "{}", call_id: "a" } }),
    message("tool_start", null, { payload: { tool: "load", args: "{}", call_id: "b" } }),
    message("tool_progress", null, { payload: { call_id: "b", text: "reading", done: 1, total: 3 } }),
  );
  const [first, second] = runs();
  expect(second?.progress).toEqual({ call_id: "b", text: "reading", done: 1, total: 3 });
  socket.notify(message("tool_progress", null, { payload: { call_id: "b", text: "sorting" } }));
  expect(runs()[0]).toBe(first); // so views do not draw it again
  expect(runs()[1]?.progress).toEqual({ call_id: "b", text: "sorting" });
  socket.notify(
    message("tool_end", null, {
      payload: { tool: "load", ok: true, call_id: "b", result: "[1…", result_ref: ref, duration_ms: 1200 },
    }),
    message("tool_progress", null, { payload: { call_id: "b", text: "late" } }),
    message("tool_end", 2, { payload: { tool: "load", ok: true, call_id: "a" } }),
  );
  expect(runs()).toEqual([
    { callId: "a", tool: "load", args: "{}", ok: true, error: null },
    { callId: "b", tool: "load", args: "{}", ok: true, error: null, result: "[1…", resultRef: ref, durationMs: 1200 },
  ]);
  expect(socket.of("hello")[0]?.capabilities?.features).toContain("tool-detail");
});

test("nextFrame calls the function also where there are no frames", () => {
  vi.useFakeTimers();
  const frames: (() => void)[] = [];
  vi.stubGlobal("requestAnimationFrame", (drawn: () => void) => frames.push(drawn));
  try {
    let flushed = 0;
    nextFrame(() => (flushed += 1));
    frames[0]?.();
    vi.advanceTimersByTime(1000);
    expect(flushed).toBe(1);
    nextFrame(() => (flushed += 1)); // in a hidden tab there are no frames
    vi.advanceTimersByTime(100);
    expect(flushed).toBe(2);
  } finally {
    vi.unstubAllGlobals();
    vi.useRealTimers();
  }
});

test("the status has the commands of the app and the session; those of the session replace others of the same name", async () => {
  const [client, socket] = await online();
  const names = () =>
    client.store.status.get().commands.map(({ name, hint }) => [name, hint].filter(Boolean).join(" "));
  let notified = 0;
  client.store.status.subscribe(() => (notified += 1));
  socket.notify({
    type: "hello",
    v: 1,
    capabilities: { components: ["text"], features: ["resume"], commands: [{ name: "export" }, { name: "model" }] },
  });
  frame();
  expect(names()).toEqual(["export", "model"]);
  socket.notify(message("commands", 5, { commands: [{ name: "compact" }, { name: "model", hint: "name" }] }));
  frame();
  expect([notified, names()]).toEqual([2, ["export", "model name", "compact"]]);
  socket.notify({ ...SESSION, epoch: "f", seq: 9, resume: "snapshot" });
  socket.notify(message("commit", 9));
  frame();
  expect(names()).toEqual(["export", "model"]);
});
