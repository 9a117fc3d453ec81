import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ArpClient, type ArpClientOptions, type Wire } from "../src/index.js";
import { FakeSocket, FakeStorage, message, SESSION, text } from "./fakes.js";

type Options = Partial<ArpClientOptions>;

function made(options: Options = {}): ArpClient {
  return new ArpClient({
    url: "http://agent.example",
    sessionId: "s",
    transport: "websocket",
    WebSocket: FakeSocket as never,
    storage: null,
    random: () => 0.5,
    schedule: (flush) => flush(),
    ...options,
  });
}

async function connect(client: ArpClient, session: Partial<Wire.SessionReady> = {}): Promise<FakeSocket> {
  client.connect();
  await vi.advanceTimersByTimeAsync(0);
  FakeSocket.last.welcome(session);
  return FakeSocket.last;
}

/** Lose the connection and reconnect. */
async function again(client: ArpClient): Promise<FakeSocket> {
  FakeSocket.last.close(1006);
  await vi.advanceTimersByTimeAsync((client.store.status.get().retryAt as number) - Date.now());
  FakeSocket.last.welcome({ resume: "replay" });
  expect(client.connected).toBe(true);
  return FakeSocket.last;
}

const echo = (id: string) => message("input", 2, { input_type: "text", data: { text: "Hi" }, id });
const phases = (client: ArpClient) => client.store.outgoing.get().map(({ phase }) => phase);
const ids = (socket: FakeSocket) => socket.of("input").map(({ id }) => id);

beforeEach(() => {
  vi.useFakeTimers();
  FakeSocket.reset();
});
afterEach(() => {
  vi.useRealTimers();
});

test("an input is sent in the session, accepted, and removed with its echo", async () => {
  const client = made();
  const socket = await connect(client);
  const id = client.sendText("Hi");
  expect(socket.of("input")).toMatchObject([{ v: 1, session_id: "s", input_type: "text", data: { text: "Hi" }, id }]);
  expect(phases(client)).toEqual(["sent"]);
  socket.notify({ type: "ack", v: 1, id, turn_id: "t1" });
  expect(phases(client)).toEqual(["accepted"]);
  socket.notify(echo(id));
  expect(phases(client)).toEqual([]);
});

test("inputs made offline are sent in order when there is a connection", async () => {
  const client = made();
  const sentTexts = [client.sendText("one"), client.sendAction("c", "go", { a: 1 }), client.stop()];
  expect(phases(client)).toEqual(["waiting", "waiting", "waiting"]);
  const socket = await connect(client);
  expect(ids(socket)).toEqual(sentTexts);
  expect(socket.of("input")[1]).toMatchObject({
    source_component: "c",
    data: { action: "go", payload: { a: 1 } },
  });
  expect(socket.of("input")[2]?.data).toEqual({ action: "arp.cancel", payload: {} });
});

test("an input without an answer is sent again with its id after every lost connection", async () => {
  const client = made();
  const socket = await connect(client);
  const [first, second] = [client.sendText("one"), client.sendText("two")];
  socket.notify({ type: "ack", v: 1, id: first, turn_id: "t1" });
  expect(ids(await again(client))).toEqual([second]);
  expect(ids(await again(client))).toEqual([second]);
});

test("an echo without an acknowledgement is an answer", async () => {
  const client = made();
  const socket = await connect(client);
  const id = client.sendText("Hi");
  const acknowledged = client.acknowledged(id);
  socket.notify(echo(id));
  expect(await acknowledged).toBe("t1");
  expect(ids(await again(client))).toEqual([]);
});

test("inputs survive a reload, with their ids, until they are accepted", async () => {
  const storage = new FakeStorage();
  const before = made({ storage });
  const socket = await connect(before);
  const [first, second] = [before.sendText("one"), before.sendText("two")];
  socket.notify({ type: "ack", v: 1, id: first, turn_id: "t1" });
  before.disconnect();

  const after = made({ storage });
  expect(after.store.outgoing.get()).toMatchObject([
    { id: second, phase: "waiting", message: { data: { text: "two" } } },
  ]);
  expect(ids(await connect(after))).toEqual([second]);
});

test("a snapshot removes accepted inputs: it contains their echoes, or they are too old", async () => {
  const client = made();
  const socket = await connect(client);
  socket.notify({ type: "ack", v: 1, id: client.sendText("Hi"), turn_id: "t1" });
  socket.close(1006);
  await vi.advanceTimersByTimeAsync(500);
  FakeSocket.last.welcome({ resume: "snapshot" });
  expect(phases(client)).toEqual([]);
});

test("inputs of one session are not sent to another, and are restored when the user returns", async () => {
  const storage = new FakeStorage();
  const client = made({ storage });
  const id = client.sendText("for s");
  client.setSessionId("other");
  expect(client.store.outgoing.get()).toEqual([]);
  expect(ids(await connect(client, { session_id: "other" }))).toEqual([]);
  client.setSessionId("s");
  await vi.advanceTimersByTimeAsync(0);
  FakeSocket.last.welcome();
  expect(ids(FakeSocket.last)).toEqual([id]);
});

test("inputs made before the session has a name move to it", async () => {
  const storage = new FakeStorage();
  const client = made({ storage, sessionId: null });
  const id = client.sendText("first words");
  const socket = await connect(client, { session_id: "named" });
  expect(socket.of("input")).toMatchObject([{ id, session_id: "named" }]);
  expect([...storage.kept.keys()]).toEqual(["arp.outbox.http://agent.example.named"]);
  expect(made({ storage, sessionId: null }).store.outgoing.get()).toEqual([]);
});

test("inputs of a new chat without a name go to that chat, whatever chat was open before", async () => {
  const storage = new FakeStorage();
  const client = made({ storage });
  await connect(client, { session_id: "s" });
  client.setSessionId(null);
  const id = client.sendText("Hi");
  await vi.advanceTimersByTimeAsync(0);
  FakeSocket.last.welcome({ session_id: "named" });
  expect(FakeSocket.last.of("input")).toMatchObject([{ session_id: "named", id }]);
  FakeSocket.last.notify({ type: "ack", v: 1, id, turn_id: "t1" }, { ...echo(id), session_id: "named" });
  expect([phases(client), storage.kept.size]).toEqual([[], 0]);
});

test("an unused new chat does not touch the waiting inputs of another tab's new chat", async () => {
  const storage = new FakeStorage();
  const named = made({ storage, sessionId: null });
  const id = made({ storage, sessionId: null }).sendText("Hi");
  await connect(named, { session_id: "named" });
  expect(made({ storage, sessionId: null }).store.outgoing.get()).toMatchObject([{ id }]);
});

test("a refused input stays with its error; it can be sent again or discarded", async () => {
  const client = made();
  const socket = await connect(client);
  const id = client.sendText("Hi");
  const outcome = client.acknowledged(id).catch((error: unknown) => error);
  const payload = { error: "100 turns wait", code: 4, id };
  socket.notify({ type: "error", v: 1, payload });
  expect(await outcome).toMatchObject({ name: "ArpError", payload });
  expect(client.store.outgoing.get()).toMatchObject([{ id, phase: "refused", error: payload }]);
  expect(ids(await again(client))).toEqual([]);
  const fresh = client.resend(id) as string;
  expect(fresh).not.toBe(id);
  expect(ids(FakeSocket.last)).toEqual([fresh]);
  FakeSocket.last.notify({ type: "error", v: 1, payload: { ...payload, id: fresh } });
  expect(client.discard(fresh)?.message.data).toEqual({ text: "Hi" });
  expect(phases(client)).toEqual([]);
});

test("an input above the server's size limit is refused by the client", async () => {
  const client = made();
  const socket = await connect(client);
  client.sendText("x".repeat(3000));
  expect(client.store.outgoing.get()).toMatchObject([{ phase: "refused", error: { code: 4 } }]);
  expect(ids(socket)).toEqual([]);
});

test("a question is answered once, however often it is clicked, also while offline", async () => {
  const client = made();
  const confirm = { id: "q", type: "confirm", props: { title: "Sure?" } };
  const first = client.answer(confirm, true);
  expect(client.answer(confirm, false)).toBe(first);
  const socket = await connect(client);
  expect(socket.of("input")).toMatchObject([{ data: { action: "confirm" }, source_component: "q" }]);
});

test("each kind of question is answered with the input that the protocol defines", async () => {
  const client = made();
  const socket = await connect(client);
  const requested = (id: string, type: string, props = {}) => ({ id, type, props });
  client.answer(requested("a", "confirm"), false);
  client.answer(requested("b", "choices"), ["x", 2]);
  client.answer(requested("c", "form", { submit_action: "register" }), { name: "Ada" });
  client.answer(requested("d", "text-input"), "words");
  client.answer(requested("e", "tabs"), 1);
  client.answer(requested("g", "table", { selectable: "one" }), 2);
  client.answer(requested("h", "table", { selectable: "many" }), [2, 0]);
  expect(socket.of("input").map(({ input_type, data }) => [input_type, data])).toEqual([
    ["action", { action: "deny" }],
    ["selection", { selected: ["x", 2] }],
    ["form_submit", { fields: { name: "Ada" }, action: "register" }],
    ["text", { text: "words" }],
    ["action", { action: "tab_change", payload: { tab: 1 } }],
    ["selection", { selected: [2] }],
    ["selection", { selected: [2, 0] }],
  ]);
  expect(() => client.answer(requested("f", "table"), 1)).toThrow(TypeError);
});

test("an answer names the surface of its question", async () => {
  const client = made();
  const socket = await connect(client);
  const confirm = { id: "q", type: "confirm", props: { title: "Sure?" } };
  socket.notify(message("render", 1, { surface: "side", components: [confirm] }), message("commit", 1));
  client.answer(confirm, true);
  expect(socket.of("input")[0]?.surface).toBe("side");
});

test("inputs without an echo are removed with their acknowledgement", async () => {
  const client = made();
  const socket = await connect(client);
  for (const id of [client.stop(), client.send("focus", {})]) socket.notify({ type: "ack", v: 1, id });
  expect(phases(client)).toEqual([]);
});

test("a full, forbidden or corrupt storage does no harm", async () => {
  const storage = new FakeStorage();
  storage.setItem = () => {
    throw new DOMException("full", "QuotaExceededError");
  };
  storage.kept.set("arp.outbox.http://agent.example.s", '[{"id": 3}, null, {"id": "x", "message": 7}]');
  const client = made({ storage });
  const id = client.sendText("Hi");
  expect(ids(await connect(client))).toEqual([id]);
});

test("commits are acknowledged when they are displayed; the newest acknowledges all", async () => {
  const flushes: (() => void)[] = [];
  const client = made({ schedule: (flush) => flushes.push(flush) });
  const socket = await connect(client);
  for (const seq of [3, 5]) {
    socket.notify(message("render", seq, { components: [text("a", `${seq}`)] }), message("commit", seq));
  }
  expect(socket.of("ack")).toEqual([]);
  for (const flush of flushes.splice(0)) flush();
  expect(socket.of("ack")).toEqual([{ type: "ack", v: 1, seq: 5 }]);
  client.store.flush();
  expect(socket.of("ack")).toHaveLength(1);
});

test("W39 how components are shown is sent with the next acknowledgement, once, and again on a new connection", async () => {
  const client = made();
  const socket = await connect(client);
  socket.notify(message("render", 3, { components: [text("a", ""), text("b", "")] }), message("commit", 3));
  client.presented("a", "failed");
  client.presented("a", "failed");
  client.presented("b", "native"); // the default, which is not reported
  client.presented("c", "fallback");
  await vi.advanceTimersByTimeAsync(0);
  expect(socket.of("ack").slice(1)).toEqual([{ type: "ack", v: 1, seq: 3, presented: { a: "failed", c: "fallback" } }]);
  client.presented("a", "native");
  await vi.advanceTimersByTimeAsync(0);
  expect(socket.of("ack").at(-1)?.presented).toEqual({ a: "native" });
  const next = await again(client);
  expect(next.of("ack")).toEqual([{ type: "ack", v: 1, seq: 3, presented: { a: "native", c: "fallback" } }]);
  client.setSessionId("other");
  await vi.advanceTimersByTimeAsync(0);
  next.notify({ ...SESSION, session_id: "other" });
  next.notify(message("render", 1, { components: [text("e", "")] }), message("commit", 1));
  expect(next.of("ack").slice(1)).toEqual([{ type: "ack", v: 1, seq: 1 }]);
});

test("files are uploaded over HTTP, retried, and report their progress", async () => {
  const bodies: FormData[] = [];
  const answers = [
    () => Promise.reject(new TypeError("network")),
    (id: string) => new Response(JSON.stringify([{ type: "ack", v: 1, id, turn_id: "t1" }])),
  ];
  const send = async (_: unknown, init: RequestInit) => {
    const body = init.body as FormData;
    bodies.push(body);
    expect(init.headers).toEqual({ Authorization: "Bearer secret" });
    return (answers.shift() as (id: string) => Response)(JSON.parse(body.get("message") as string).id);
  };
  const client = made({ token: "secret", fetch: send as typeof fetch });
  await connect(client);
  const file = new File(["a,b"], "data.csv", { type: "text/csv" });
  const id = client.sendText("Look", { files: [file, { part: "fields.photo", file }] });
  const isShown = (state: object) => vi.waitFor(() => expect(client.store.outgoing.get()).toMatchObject([state]));
  await isShown({ phase: "waiting" });
  expect(bodies).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(3000);
  await isShown({ phase: "accepted", progress: 1 });
  expect(bodies).toHaveLength(2);
  const [, body] = bodies as [FormData, FormData];
  expect(JSON.parse(body.get("message") as string)).toMatchObject({
    id,
    session_id: "s",
    input_type: "file",
    data: { text: "Look" },
  });
  expect((body.get("file") as File).name).toBe("data.csv");
  expect((body.get("fields.photo") as File).name).toBe("data.csv");
});

test("a refused upload has the error of the server", async () => {
  const answer = async () => new Response("too big", { status: 413 });
  const client = made({ fetch: answer as typeof fetch });
  await connect(client);
  client.sendText("", { files: [new File(["x"], "x")] });
  await vi.waitFor(() =>
    expect(client.store.outgoing.get()).toMatchObject([{ phase: "refused", error: { error: "HTTP 413", code: 4 } }]),
  );
  expect(client.connected).toBe(true);
});
