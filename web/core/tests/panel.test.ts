import { beforeEach, expect, test } from "vitest";
import { ArpClient } from "../src/index.js";
import { idsIn, panelOf } from "../src/surfaces.js";
import { delta, FakeSocket, message, text } from "./fakes.js";

beforeEach(() => FakeSocket.reset());

async function online(): Promise<[ArpClient, FakeSocket]> {
  const client = new ArpClient({
    url: "http://agent.example",
    storage: null,
    WebSocket: FakeSocket as never,
    schedule: (flush) => flush(),
  });
  client.connect();
  await Promise.resolve();
  FakeSocket.last.welcome();
  return [client, FakeSocket.last];
}

const on = (surface: string, ...components: object[]) => [
  { ...message("render", null, { components }), surface },
  message("commit", null),
];
const describe = (surface: string, payload: object) => ({ ...message("surface", null, { payload }), surface });

test("a panel has the surfaces by name, without popups, and is the same object until one of them changes", async () => {
  const [client, socket] = await online();
  const panel = panelOf(client);
  let called = 0;
  panel.subscribe(() => (called += 1));
  socket.notify(...on("notes", text("b", "B")), describe("build", { role: "toplevel", title: "Build" }));
  socket.notify(...on("build", text("a", "A")), describe("pop", { role: "popup" }), ...on("pop", text("c", "C")));
  const content = panel.get();
  expect(content).toEqual({
    sessionId: client.sessionId,
    surfaces: [
      { name: "build", info: { role: "toplevel", title: "Build" }, components: [text("a", "A")] },
      { name: "notes", info: undefined, components: [text("b", "B")] },
    ],
  });
  called = 0;
  socket.notify(delta("beside it"), message("turn", null, { status: "waiting" }), ...on("pop", text("c", "D")));
  expect([called, panel.get() === content]).toEqual([0, true]);
  socket.notify(describe("build", { role: "toplevel", title: "Built" }));
  expect([called, panel.get().surfaces[1] === content.surfaces[1]]).toEqual([1, false]);
  expect(panel.get().surfaces[0]?.info?.title).toBe("Built");
});

test("another session has a new panel value, also without surfaces", async () => {
  const [client] = await online();
  const panel = panelOf(client);
  const before = panel.get();
  let called = 0;
  panel.subscribe(() => (called += 1));
  client.setSessionId("another");
  expect([called, panel.get()]).toEqual([1, { sessionId: "another", surfaces: [] }]);
  expect(panel.get()).not.toBe(before);
});

test("the ids in a panel include nested components, and an extra id for each open question", async () => {
  const [client, socket] = await online();
  const confirm = (id: string, state: string) => ({ id, type: "confirm", props: { title: "Go?", state } });
  const group = { id: "g", type: "group", props: { children: [confirm("q", "open"), confirm("r", "answered")] } };
  socket.notify(...on("side", group));
  expect([...idsIn(panelOf(client).get())]).toEqual(["g", "q", "q?", "r"]);
});
