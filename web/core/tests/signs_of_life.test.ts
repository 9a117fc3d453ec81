/** A connection that failed without an error is detected, and a working one is not closed. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ArpClient, type ArpClientCallbacks } from "../src/index.js";
import { delta, FakeSocket, HELLO, message, SESSION } from "./fakes.js";

const FEATURES = [...(HELLO.capabilities.features as string[]), "ping"];
const ANSWERS = { ...HELLO, capabilities: { ...HELLO.capabilities, features: FEATURES } };

const window = new EventTarget();
const clients: ArpClient[] = [];
const page = Object.assign(new EventTarget(), { visibilityState: "visible" });

/** Return a connected client; with the default `hello` its server supports pings. */
async function online(hello: object = ANSWERS, callbacks: ArpClientCallbacks = {}): Promise<ArpClient> {
  const client = new ArpClient(
    {
      url: "http://agent.example",
      transport: "websocket",
      WebSocket: FakeSocket as never,
      storage: null,
      random: () => 0.5,
      schedule: (flush) => flush(),
    },
    callbacks,
  );
  clients.push(client);
  client.connect();
  await vi.advanceTimersByTimeAsync(0);
  welcome(hello);
  return client;
}

function welcome(hello: object = ANSWERS): void {
  FakeSocket.last.onopen?.();
  FakeSocket.last.notify(hello, { ...SESSION, resume: FakeSocket.made.length > 1 ? "replay" : "new" });
}

const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);
const pings = () => FakeSocket.last.of("ping");
const status = (client: ArpClient) => client.store.status.get();
const pong = () => FakeSocket.last.notify({ type: "pong", v: 1, id: pings().at(-1)?.id });

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("addEventListener", window.addEventListener.bind(window));
  vi.stubGlobal("document", page);
  FakeSocket.reset();
});
afterEach(() => {
  for (const client of clients.splice(0)) client.disconnect();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

test("the hello announces that the client answers pings", async () => {
  await online();
  expect(FakeSocket.last.of("hello")[0]?.capabilities?.features).toContain("ping");
});

test("after ten seconds of silence a ping is sent, and after ten more without an answer the connection is lost", async () => {
  const client = await online();
  await pass(9_999);
  expect(pings()).toEqual([]);
  await pass(1);
  expect(pings()).toMatchObject([{ type: "ping", v: 1 }]);
  await pass(9_999);
  expect(status(client).phase).toBe("online");
  await pass(1);
  expect(status(client)).toMatchObject({ phase: "waiting", reason: "no sign of life", attempt: 1 });
  expect(FakeSocket.last.closed).toBe(true);
});

test("a server that answers gets a ping with a new id after each silence", async () => {
  const client = await online();
  for (let round = 0; round < 60; round += 1) {
    await pass(10_000);
    pong();
  }
  expect([status(client).phase, FakeSocket.made.length]).toEqual(["online", 1]);
  expect(pings().length).toBeGreaterThanOrEqual(30);
  expect(new Set(pings().map(({ id }) => id)).size).toBe(pings().length);
});

test("any frame is a sign of life: no ping is sent while text streams, and any frame answers a ping", async () => {
  const client = await online();
  for (let seq = 1; seq <= 30; seq += 1) {
    await pass(3000);
    FakeSocket.last.notify(delta("x", seq));
  }
  expect(pings()).toEqual([]);
  await pass(10_000);
  expect(pings()).toHaveLength(1);
  FakeSocket.last.notify(delta("late", 31));
  await pass(10_000);
  expect(status(client).phase).toBe("online");
});

test("pings and pongs change nothing on the screen, have no position, and call no callback", async () => {
  const received: string[] = [];
  const client = await online(ANSWERS, { onMessage: ({ type }) => received.push(type) });
  FakeSocket.last.notify(delta("x", 4));
  expect(status(client).phase).toBe("online");
  let changes = 0;
  client.store.subscribe(() => (changes += 1));
  FakeSocket.last.notify({ type: "ping", v: 1, id: "of the server" }, { type: "pong", v: 1, id: "nobody asked" });
  expect(FakeSocket.last.of("pong")).toEqual([{ type: "pong", v: 1, id: "of the server" }]);
  expect([received, changes]).toEqual([["hello", "session", "delta"], 0]);
  FakeSocket.last.close(1006);
  await pass(1000);
  FakeSocket.last.onopen?.();
  expect(FakeSocket.last.of("hello")[0]?.resume).toEqual({ epoch: "e", seq: 4 });
});

test("a server without the feature gets no ping", async () => {
  const client = await online(HELLO);
  await pass(600_000);
  expect([FakeSocket.last.sent.map(({ type }) => type), status(client).phase]).toEqual([["hello"], "online"]);
});

test("an input sent on a failed connection is sent again on the next one, once", async () => {
  const client = await online();
  const id = client.sendText("hello?");
  await pass(20_000);
  expect(client.store.outgoing.get()).toMatchObject([{ id, phase: "waiting" }]);
  await pass(500);
  welcome();
  expect(FakeSocket.last.of("input")).toMatchObject([{ id }]);
});

test("after sleep, a new ping is sent before the connection counts as lost", async () => {
  const client = await online();
  await pass(10_000);
  expect(pings()).toHaveLength(1);
  await pass(5000);
  vi.setSystemTime(Date.now() + 3_600_000); // the computer slept for an hour; timers did not run
  await pass(5000);
  expect(status(client).phase).toBe("online");
  expect(pings()).toHaveLength(2);
  pong();
  await pass(10_000);
  expect(status(client).phase).toBe("online");
});

test("a connection that failed during sleep is reported ten seconds after the new ping", async () => {
  const client = await online();
  await pass(15_000);
  vi.setSystemTime(Date.now() + 3_600_000);
  await pass(15_000);
  expect(status(client).phase).toBe("waiting");
});

test("timers of a hidden page that run a minute late do not close a working connection", async () => {
  const client = await online();
  for (let minute = 0; minute < 10; minute += 1) {
    vi.setSystemTime(Date.now() + 50_000); // the timer of ten seconds is overdue and runs now
    await pass(10_000);
    pong();
    vi.setSystemTime(Date.now() + 50_000);
    await pass(10_000);
  }
  expect([status(client).phase, FakeSocket.made.length]).toEqual(["online", 1]);
});

test("a clock that is set back changes nothing", async () => {
  const client = await online();
  vi.setSystemTime(Date.now() - 3_600_000);
  await pass(20_000);
  expect(status(client).phase).toBe("waiting");
});

test.each([
  ["the network is back", () => window.dispatchEvent(new Event("online"))],
  ["the page shows again", () => page.dispatchEvent(new Event("visibilitychange"))],
])("when %s after a long silence the server is asked at once, and has three seconds", async (_, wake) => {
  const client = await online();
  wake();
  expect(pings()).toEqual([]); // a message has just arrived
  vi.setSystemTime(Date.now() + 31_000);
  wake();
  expect(pings()).toHaveLength(1);
  pong();
  await pass(3000);
  expect([status(client).phase, FakeSocket.made.length]).toEqual(["online", 1]);
  vi.setSystemTime(Date.now() + 31_000);
  wake();
  await pass(3000);
  expect(status(client)).toMatchObject({ phase: "waiting", reason: "no sign of life" });
  client.disconnect();
  expect(vi.getTimerCount()).toBe(0);
});

test("an offline browser reports it at once and keeps trying: a local server needs no network", async () => {
  const client = await online();
  window.dispatchEvent(new Event("offline"));
  expect(status(client)).toMatchObject({ phase: "waiting", reason: "offline" });
  await pass(500);
  window.dispatchEvent(new Event("offline"));
  expect(status(client).phase).toBe("waiting"); // also during an attempt
  window.dispatchEvent(new Event("online"));
  await pass(0);
  welcome();
  expect(status(client).phase).toBe("online");
  client.disconnect();
  window.dispatchEvent(new Event("offline"));
  expect(status(client)).toMatchObject({ phase: "idle", reason: null });
});

test("if connections fail repeatedly without an answer, the client waits longer, so that a large message arrives", async () => {
  const client = await online();
  const took: number[] = [];
  for (let link = 0; link < 6; link += 1) {
    const began = Date.now();
    while (status(client).phase === "online") await pass(1000);
    took.push(Math.round((Date.now() - began) / 1000));
    while (status(client).phase === "waiting") await pass(100);
    welcome();
  }
  expect(took).toEqual([20, 20, 30, 50, 90, 90]);
  await pass(10_000);
  FakeSocket.last.notify(message("commit", 5)); // the large message has arrived
  await pass(80_000);
  const began = Date.now();
  while (status(client).phase === "online") await pass(1000);
  expect(Date.now() - began).toBeLessThanOrEqual(25_000);
});
