/** Permissions from the question to the answer, also if the answer is refused or another screen is first. */

import { beforeEach, expect, test, vi } from "vitest";
import { ArpClient, type ErrorPayload, type OpenPermission } from "../src/index.js";
import { PermissionRequests } from "../src/permissions.js";
import { FakeSocket, message } from "./fakes.js";

let client: ArpClient;
let requests: PermissionRequests;
let refused: ReturnType<typeof vi.fn<(error: ErrorPayload) => void>>;

const notify = (...messages: object[]) => FakeSocket.last.notify(...messages);
const pending = () => requests.pending.map(({ component }) => component.id);
const first = () => requests.pending[0] as OpenPermission;
const sent = () => FakeSocket.last.of("input").at(-1);
const answeredElsewhere = (id: string) => {
  const op = { op: "update", target: id, path: "props.state", value: "answered" };
  notify(message("patch", null, { ops: [op] }), message("commit", 9));
};

function ask(component: string, permission: object = {}): void {
  notify(
    message("turn", 1, {
      status: "waiting",
      permission: { component, tool: "shell", input: '{"n":1}', ...permission },
    }),
    message("render", null, { components: [{ id: component, type: "confirm", props: { message: "Run?" } }] }),
    message("commit", 2, { final: false }),
  );
}

function connected(): ArpClient {
  const made = new ArpClient({
    url: "http://agent.example",
    sessionId: "s",
    storage: null,
    WebSocket: FakeSocket as never,
    schedule: (flush) => flush(),
  });
  made.connect();
  return made;
}

beforeEach(async () => {
  FakeSocket.reset();
  client = connected();
  await Promise.resolve();
  FakeSocket.last.welcome();
  refused = vi.fn();
  requests = new PermissionRequests(client, refused);
  requests.update();
});

test("W51 a permission waits until it is answered here, and the list is the same object until then", () => {
  ask("a");
  expect([requests.update(), pending(), requests.update()]).toEqual([true, ["a"], false]);
  requests.grant(first(), "once");
  expect([requests.update(), pending()]).toEqual([true, []]);
  expect(sent()).toMatchObject({ source_component: "a", data: { action: "confirm", payload: { scope: "once" } } });
});

test("a listener is called for permissions and not for text", () => {
  const listener = vi.fn();
  const stop = requests.subscribe(listener);
  ask("a");
  expect(listener).toHaveBeenCalled();
  listener.mockClear();
  stop();
  ask("b");
  expect(listener).not.toHaveBeenCalled();
});

test("W51 an edited input is sent with the answer; one that is not an object stays, with a fault until it is changed", () => {
  ask("a", { editable: true });
  requests.update();
  requests.edit("a", "ls");
  expect([requests.grant(first(), "once"), requests.faultOf("a"), pending()]).toEqual([false, "input", ["a"]]);
  expect([requests.edit("a", '{"n":2}'), requests.faultOf("a"), requests.editOf("a")]).toEqual([
    true,
    undefined,
    '{"n":2}',
  ]);
  expect(requests.grant(first(), "session")).toBe(true);
  expect(sent()?.data.payload).toMatchObject({ scope: "session", updated_input: { n: 2 } });
});

test("a discarded edit leaves the input as the agent wrote it", () => {
  ask("a", { editable: true });
  requests.update();
  requests.edit("a", "{");
  requests.discardEdit("a");
  expect([requests.editOf("a"), requests.grant(first(), "once")]).toEqual([undefined, true]);
  expect(sent()?.data.payload).not.toHaveProperty("updated_input");
});

test("a denial has its reason", () => {
  ask("a");
  requests.update();
  requests.deny(first(), "not now");
  expect(sent()?.data).toMatchObject({ action: "deny", payload: { reason: "not now" } });
});

test("W51 a refused answer brings the permission back with a fault, and is not sent again", () => {
  ask("a");
  requests.update();
  requests.grant(first(), "once");
  requests.update();
  notify({ type: "error", v: 1, payload: { error: "too late", code: 11, id: sent()?.id } });
  expect([requests.update(), pending(), requests.faultOf("a")]).toEqual([
    true,
    ["a"],
    expect.objectContaining({ error: "too late" }),
  ]);
  expect(client.store.outgoing.get()).toEqual([]);
  expect(refused).not.toHaveBeenCalled();
  answeredElsewhere("a");
  requests.update();
  expect(refused).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ error: "too late" }));
});

test("what was written and answered belongs to its session", () => {
  ask("a");
  requests.update();
  requests.edit("a", "{}");
  client.setSessionId("other");
  requests.update();
  expect([pending(), requests.editOf("a")]).toEqual([[], undefined]);
});

test("what was written and announced is kept when another client of the same session replaces the client", async () => {
  ask("a", { editable: true });
  requests.update();
  requests.edit("a", "ls");
  requests.grant(first(), "once");
  requests.announced.add("a");
  const listener = vi.fn();
  requests.client = connected();
  requests.subscribe(listener);
  requests.update();
  await Promise.resolve();
  FakeSocket.last.welcome();
  ask("a", { editable: true });
  expect(listener).toHaveBeenCalled();
  expect([requests.update(), pending(), requests.editOf("a"), requests.faultOf("a")]).toEqual([
    true,
    ["a"],
    "ls",
    "input",
  ]);
  expect(requests.announced).toEqual(new Set(["a"]));
  requests.client.setSessionId("other");
  requests.update();
  expect([requests.editOf("a"), requests.announced.size]).toEqual([undefined, 0]);
});

test("a recording asks for nothing", () => {
  notify({ type: "hello", v: 1, capabilities: { components: [], features: ["resume"] } });
  ask("a");
  requests.update();
  expect(pending()).toEqual([]);
});
