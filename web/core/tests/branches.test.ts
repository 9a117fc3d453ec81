import { beforeEach, expect, test, vi } from "vitest";
import { ArpClient, type ArpClientCallbacks, type TurnState } from "../src/index.js";
import { FakeSocket, HELLO, message, SESSION, text } from "./fakes.js";

async function online(callbacks: ArpClientCallbacks = {}): Promise<[ArpClient, FakeSocket]> {
  const options = { url: "http://agent.example", storage: null, WebSocket: FakeSocket as never };
  const client = new ArpClient({ ...options, schedule: (flush) => flush() }, callbacks);
  client.connect();
  await Promise.resolve();
  FakeSocket.last.welcome();
  return [client, FakeSocket.last];
}

const of = (turnId: string, type: string, seq: number | null, fields: object = {}) =>
  ({ ...message(type, seq, fields), turn_id: turnId }) as object;
const sentTexts = (turnId: string, words: string, seq: number | null, fields: object = {}) =>
  of(turnId, "input", seq, { input_type: "text", data: { text: words }, ...fields });
const ended = (turnId: string, seq: number | null) => [
  of(turnId, "turn", null, { status: "completed" }),
  of(turnId, "commit", seq, { final: true }),
];
const sent = (socket: FakeSocket) => socket.of("input").map(({ id: _, session_id: __, v: ___, ...rest }) => rest);

beforeEach(() => FakeSocket.reset());

test("actions on turns are sent in the format of the wire", async () => {
  const [client, socket] = await online();
  const question = { ...text("q", "?"), type: "confirm" };
  client.edit("t1", "other");
  client.regenerate("t1");
  client.showVersion("t2");
  client.promote("t3");
  client.stop("t3");
  client.grant(question, "session");
  client.deny({ ...question, id: "r" }, "too dangerous");
  expect(sent(socket)).toMatchObject([
    { input_type: "text", data: { text: "other" }, edits: "t1" },
    { input_type: "action", data: { action: "arp.regenerate", payload: { turn_id: "t1" } } },
    { input_type: "action", data: { action: "arp.branch", payload: { turn_id: "t2" } } },
    { input_type: "action", data: { action: "arp.promote", payload: { turn_id: "t3" } } },
    { input_type: "action", data: { action: "arp.cancel", payload: { turn_id: "t3" } } },
    { data: { action: "confirm", payload: { scope: "session" } }, source_component: "q" },
    { data: { action: "deny", payload: { reason: "too dangerous" } }, source_component: "r" },
  ]);
});

test("a permission is granted once, however often the button is pressed", async () => {
  const [client, socket] = await online();
  const question = { ...text("q", "?"), type: "confirm" };
  expect(client.grant(question)).toBe(client.deny(question));
  expect(socket.of("input")).toHaveLength(1);
});

test("a refused edit is still an edit when it is sent again", async () => {
  const [client, socket] = await online();
  const id = client.edit("t1", "other");
  socket.notify({ type: "error", v: 1, payload: { error: "busy", code: 17, id } });
  client.resend(id);
  expect(socket.of("input").map(({ edits }) => edits)).toEqual(["t1", "t1"]);
});

test("another branch replaces the shown one; unchanged turns are the same objects", async () => {
  const onConnect = vi.fn();
  const [client, socket] = await online({ onConnect });
  socket.notify(sentTexts("t1", "a", 1), ...ended("t1", 2), sentTexts("t2", "b", 3), ...ended("t2", 4));
  const before = client.store.turn("t1").get();
  socket.notify(
    { ...SESSION, seq: 9, resume: "snapshot" },
    sentTexts("t1", "a", null),
    ...ended("t1", null),
    sentTexts("t3", "B", null, { versions: ["t2", "t3"] }),
    of("t3", "turn", null, { status: "running" }),
  );
  expect(client.store.turnIds.get()).toEqual(["t1", "t2"]);
  socket.notify({ type: "commit", v: 1, session_id: "s", seq: 9 });
  expect(client.store.turnIds.get()).toEqual(["t1", "t3"]);
  expect(client.store.turn("t1").get()).toBe(before);
  expect(client.store.turn("t2").get()).toBeUndefined();
  expect(client.store.turn("t3").get()?.inputs[0]?.versions).toEqual(["t2", "t3"]);
  expect(onConnect).toHaveBeenCalledTimes(1);
});

test("a turn that differs in a snapshot is a new object", async () => {
  const [client, socket] = await online();
  socket.notify(sentTexts("t1", "a", 1), ...ended("t1", 2));
  const before = client.store.turn("t1").get();
  socket.notify(
    { ...SESSION, seq: 9, resume: "snapshot" },
    sentTexts("t1", "a", null, { versions: ["t1", "t2"] }),
    ...ended("t1", null),
    { type: "commit", v: 1, session_id: "s", seq: 9 },
  );
  expect(client.store.turn("t1").get()).not.toBe(before);
});

test("an edited input replaces the one that began its turn", async () => {
  const [client, socket] = await online();
  socket.notify(sentTexts("t1", "a", 1), of("t1", "turn", 2, { status: "queued", position: 1 }));
  socket.notify(sentTexts("t1", "A", 3, { edited: true }));
  const turn = client.store.turn("t1").get() as TurnState;
  expect(turn.inputs.map(({ data }) => data.text)).toEqual(["A"]);
  expect(turn.marks).toHaveLength(1);
});

test("an answer to a permission names the shown input, and may contain another one", async () => {
  const [client, socket] = await online();
  const asked = { component: "q", tool: "shell", digest: "0a", editable: true };
  const question = { id: "q", type: "confirm", props: { title: "Run it?" } };
  client.grant(question, "once", asked, { command: "ls" });
  client.deny({ ...question, id: "r" }, "no", asked);
  expect(socket.of("input").map(({ data }) => data)).toEqual([
    { action: "confirm", payload: { scope: "once", digest: "0a", updated_input: { command: "ls" } } },
    { action: "deny", payload: { reason: "no", digest: "0a" } },
  ]);
});

test("a turn has the permission requests of its tools", async () => {
  const [client, socket] = await online();
  const permission = { component: "q", tool: "shell", call_id: "t1.1", scopes: ["once", "session"] };
  socket.notify(of("t1", "turn", 1, { status: "waiting", permission }));
  socket.notify(of("t1", "turn", 2, { status: "waiting", permission: { component: "r", tool: "shell" } }));
  socket.notify(of("t1", "turn", 3, { status: "running" }));
  const { permissions, status } = client.store.turn("t1").get() as TurnState;
  expect(status).toBe("running");
  expect(permissions.map(({ component }) => component)).toEqual(["q", "r"]);
});

test("W24 a paused queue is reported, and can be resumed", async () => {
  const [client, socket] = await online();
  socket.notify(of("t2", "turn", 1, { status: "queued", position: 1, paused: true }));
  expect((client.store.turn("t2").get() as TurnState).paused).toBe(true);
  client.goOn();
  expect(socket.of("input").at(-1)?.data).toEqual({ action: "arp.continue", payload: {} });
  socket.notify(of("t2", "turn", 2, { status: "running" }));
  expect((client.store.turn("t2").get() as TurnState).paused).toBe(false);
});

test("a permission without a tool, and versions that are not a list, cannot be read", async () => {
  const [client, socket] = await online();
  const errors: string[] = [];
  client.store.errors.subscribe(() => errors.push("told"));
  socket.notify(of("t1", "turn", 1, { status: "waiting", permission: { component: "q" } }));
  socket.notify(sentTexts("t1", "a", 2, { versions: "t1" }));
  expect(client.store.turnIds.get()).toEqual([]);
});

test("the commands of the app are in the status", async () => {
  const [client, socket] = await online();
  const commands = [{ name: "export", description: "Exports.", hint: "csv" }, { name: "help" }];
  socket.notify({ ...HELLO, capabilities: { ...HELLO.capabilities, commands } });
  expect(client.capabilities?.commands).toEqual(commands);
});
