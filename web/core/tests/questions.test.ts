import { beforeEach, expect, test } from "vitest";
import { ArpClient, openPermissions, Screen, type Wire } from "../src/index.js";
import { FakeSocket, message, text } from "./fakes.js";

beforeEach(() => FakeSocket.reset());

const confirm = (id: string, state?: string) => ({
  id,
  type: "confirm",
  props: { title: id, ...(state && { state }) },
});
const waits = (turnId: string, component: string, more: object = {}) => ({
  ...message("turn", 1, {
    status: "waiting",
    permission: { component, tool: "shell", call_id: `call-${component}`, digest: "d", ...more },
  }),
  turn_id: turnId,
});
const render = (turnId: string, ...components: object[]) => ({
  ...message("render", null, { components }),
  turn_id: turnId,
});
const commit = (turnId: string, final = false) => ({ ...message("commit", 2, { final }), turn_id: turnId });

function screenOf(...messages: object[]): Screen {
  const screen = new Screen();
  for (const one of messages) screen.apply(one as Wire.AgentMessage);
  return screen;
}

const open = (screen: Screen) => openPermissions(screen).map(({ turnId, component }) => [turnId, component.id]);

test("a permission is open as long as its component says so, whatever the status of its turn", () => {
  const cutOff = screenOf(
    render("t1", confirm("a"), confirm("b", "answered")),
    waits("t1", "a"),
    waits("t1", "b"),
    commit("t1", true),
  );
  expect(open(cutOff)).toEqual([["t1", "a"]]);
  cutOff.apply({ ...message("turn", 3, { status: "running" }), turn_id: "t2" } as never);
  for (const one of [render("t2", confirm("c")), waits("t2", "c"), commit("t2")]) cutOff.apply(one as never);
  expect(open(cutOff)).toEqual([
    ["t1", "a"],
    ["t2", "c"],
  ]);
  cutOff.apply({
    ...message("patch", null, { ops: [{ op: "update", target: "a", path: "props.state", value: "expired" }] }),
    turn_id: "t1",
  } as never);
  cutOff.apply(commit("t1", true) as never);
  expect(open(cutOff)).toEqual([["t2", "c"]]);
});

test("a permission has the component of its surface and the call of its tool", () => {
  const start = (call_id: string) => ({
    ...message("tool_start", null, { payload: { tool: "shell", args: `"${call_id}"`, call_id } }),
    turn_id: "t1",
  });
  const screen = screenOf(
    start("call-other"),
    start("call-a"),
    render("t1", confirm("a")),
    commit("t1"),
    { ...render("t1", { ...confirm("a"), props: { title: "on the side" } }), surface: "side" },
    commit("t1"),
    waits("t1", "a", { surface: "side" }),
  );
  const [found] = openPermissions(screen);
  expect([found?.component.props.title, found?.run?.args]).toEqual(["on the side", '"call-a"']);
  expect(openPermissions(screenOf(waits("t1", "gone")))).toEqual([]);
});

async function asked(): Promise<[ArpClient, FakeSocket]> {
  const client = new ArpClient({
    url: "http://agent.example",
    storage: null,
    WebSocket: FakeSocket as never,
    schedule: (flush) => flush(),
  });
  client.connect();
  await Promise.resolve();
  FakeSocket.last.welcome();
  FakeSocket.last.notify(render("t1", confirm("a"), text("x", "X")), waits("t1", "a"), commit("t1", true));
  return [client, FakeSocket.last];
}

test("the store's permissions are the same list until one changes; an answered one is left out", async () => {
  const [client, socket] = await asked();
  const { permissions } = client.store;
  const before = permissions.get();
  expect([client.store.status.get().activeTurn, before.map(({ component }) => component.id)]).toEqual([null, ["a"]]);
  socket.notify({ ...message("delta", null, { payload: { delta: "more", format: "markdown" } }), turn_id: "t1" });
  expect(permissions.get()).toBe(before);
  let heard = 0;
  permissions.subscribe(() => (heard += 1));
  const [{ component, permission }] = before as [(typeof before)[0]];
  const id = client.grant(component, "once", permission);
  expect([permissions.get(), heard > 0]).toEqual([[], true]);
  expect(socket.of("input")[0]).toMatchObject({
    source_component: "a",
    surface: "main",
    data: { action: "confirm", payload: { scope: "once", digest: "d" } },
  });
  socket.notify({ type: "error", v: 1, payload: { error: "another input", code: -32017, id } });
  expect(permissions.get().map(({ component }) => component.id)).toEqual(["a"]); // it was refused, so it waits again
});

test("while another session loads, the previous one has no open permissions", async () => {
  const [client] = await asked();
  client.setSessionId("another", { keep: true });
  expect([client.store.status.get().stale, client.store.permissions.get()]).toEqual([true, []]);
});
