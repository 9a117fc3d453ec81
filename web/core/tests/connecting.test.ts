import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ArpClient, type ArpClientOptions } from "../src/index.js";
import { delta, FakeSocket, message, SESSION } from "./fakes.js";

const NO_FETCH = (() => Promise.reject(new TypeError("no network"))) as typeof fetch;

function made(options: Partial<ArpClientOptions> = {}, callbacks = {}): ArpClient {
  return new ArpClient(
    {
      url: "http://agent.example/app",
      transport: "websocket",
      WebSocket: FakeSocket as never,
      fetch: NO_FETCH,
      storage: null,
      random: () => 0.5,
      schedule: (flush) => flush(),
      ...options,
    },
    callbacks,
  );
}

/** Wait for pending promises of the driver: the token, the import of a transport. */
async function waitUntilDrawn(): Promise<void> {
  await vi.advanceTimersByTimeAsync(0);
}

async function online(options: Partial<ArpClientOptions> = {}, callbacks = {}): Promise<ArpClient> {
  const client = made(options, callbacks);
  client.connect();
  await waitUntilDrawn();
  FakeSocket.last.welcome();
  return client;
}

const phase = (client: ArpClient) => client.store.status.get().phase;

beforeEach(() => {
  vi.useFakeTimers();
  FakeSocket.reset();
});
afterEach(() => {
  vi.useRealTimers();
});

test("the hello is the first message and describes the renderer", async () => {
  await online({ sessionId: "mine", token: "secret", theme: "dark", limits: { max_table_rows: 5 } });
  expect(FakeSocket.last.url).toBe("ws://agent.example/app/_arp/v1");
  expect(FakeSocket.last.protocol).toBeUndefined(); // a draft server selects none: a browser would give up
  const [hello] = FakeSocket.last.of("hello");
  expect(hello).toMatchObject({ session_id: "mine", token: "secret", theme: "dark", resume: null });
  expect(hello?.capabilities?.limits).toEqual({ max_table_rows: 5 });
  expect(hello?.capabilities?.components).toMatchObject({ text: 1, chart: 1, split: 1 });
  expect(hello?.capabilities?.features).toContain("frame-ack");
});

test("two calls of connect make one socket", async () => {
  const client = made();
  client.connect();
  client.connect();
  await waitUntilDrawn();
  FakeSocket.last.welcome();
  client.connect();
  await waitUntilDrawn();
  expect(FakeSocket.made).toHaveLength(1);
});

test("the client is online when the server has named the session, not before", async () => {
  const connects: unknown[] = [];
  const client = made({}, { onConnect: (caps: unknown) => connects.push(caps) });
  client.connect();
  await waitUntilDrawn();
  FakeSocket.last.onopen?.();
  expect([client.connected, phase(client), connects.length]).toEqual([false, "connecting", 0]);
  FakeSocket.last.welcome();
  expect([client.connected, phase(client), connects.length]).toEqual([true, "online", 1]);
  expect(client.sessionId).toBe("s");
});

test("a connection that cannot be opened is tried again, also if only an error reports it, as in Node.js", async () => {
  const client = made();
  client.connect();
  await waitUntilDrawn();
  FakeSocket.last.onerror?.(); // a browser calls `onclose` next
  expect(client.store.status.get().attempt).toBe(0);
  FakeSocket.last.readyState = 0;
  FakeSocket.last.onerror?.();
  const { retryAt, attempt } = client.store.status.get();
  expect(attempt).toBe(1);
  await vi.advanceTimersByTimeAsync((retryAt as number) - Date.now());
  FakeSocket.last.welcome();
  expect(client.connected).toBe(true);
});

test("after a lost connection the client resumes from its position, after a random part of 1, 2, 4, 8, 16 s", async () => {
  const client = await online();
  FakeSocket.last.notify(delta("x", 7));
  const waits: number[] = [];
  for (let tries = 0; tries < 7; tries += 1) {
    FakeSocket.last.close(1006);
    const { retryAt, attempt } = client.store.status.get();
    expect(attempt).toBe(tries + 1);
    waits.push((retryAt as number) - Date.now());
    await vi.advanceTimersByTimeAsync(waits.at(-1) as number);
  }
  expect(waits).toEqual([500, 1000, 2000, 4000, 8000, 8000, 8000]);
  FakeSocket.last.onopen?.();
  expect(FakeSocket.last.of("hello")[0]?.resume).toEqual({ epoch: "e", seq: 7 });
});

test("a stable connection resets the delays, one that broke at once does not", async () => {
  const client = await online();
  FakeSocket.last.close(1006);
  await vi.advanceTimersByTimeAsync(500);
  FakeSocket.last.welcome({ resume: "replay" });
  FakeSocket.last.close(1006);
  expect(client.store.status.get().attempt).toBe(2);
  await vi.advanceTimersByTimeAsync(1000);
  FakeSocket.last.welcome({ resume: "replay" });
  await vi.advanceTimersByTimeAsync(5000);
  FakeSocket.last.close(1006);
  expect(client.store.status.get().attempt).toBe(1);
});

test("late messages of an old socket are ignored", async () => {
  const client = await online();
  const old = FakeSocket.last;
  const sentTexts = old.onmessage;
  old.close(1006);
  sentTexts?.({ data: JSON.stringify(delta("late", 3)) });
  expect(client.store.turnIds.get()).toEqual([]);
});

test("a server that does not answer the hello is given up after ten seconds", async () => {
  const client = made();
  client.connect();
  await waitUntilDrawn();
  FakeSocket.last.onopen?.();
  await vi.advanceTimersByTimeAsync(9_999);
  expect(phase(client)).toBe("connecting");
  await vi.advanceTimersByTimeAsync(1);
  expect([phase(client), FakeSocket.last.closed]).toEqual(["waiting", true]);
});

test("a refused hello ends the attempts until connect is called again", async () => {
  const client = made();
  client.connect();
  await waitUntilDrawn();
  FakeSocket.last.onopen?.();
  FakeSocket.last.notify({ type: "error", v: 1, payload: { error: "who are you?", code: 14 } });
  expect(client.store.status.get()).toMatchObject({ phase: "refused", refusal: { code: 14 } });
  await vi.advanceTimersByTimeAsync(60_000);
  expect(FakeSocket.made).toHaveLength(1);
  client.connect();
  await waitUntilDrawn();
  expect(FakeSocket.made).toHaveLength(2);
});

test("a temporary refusal is tried again", async () => {
  const client = made();
  client.connect();
  await waitUntilDrawn();
  FakeSocket.last.onopen?.();
  const payload = { error: "too many", code: 16, retryable: true };
  FakeSocket.last.notify({ type: "error", v: 1, payload });
  expect(phase(client)).toBe("waiting");
});

test("close code 1008 ends the attempts, 1012 does not", async () => {
  const client = await online();
  FakeSocket.last.close(1012, "restarting");
  expect(client.store.status.get()).toMatchObject({ phase: "waiting", reason: "restarting" });
  await vi.advanceTimersByTimeAsync(500);
  FakeSocket.last.welcome({ resume: "replay" });
  FakeSocket.last.close(1008, "no");
  expect(client.store.status.get()).toMatchObject({ phase: "refused", reason: "no" });
});

test("close code 1000 means that the session is deleted: a reconnect would begin another one", async () => {
  const client = await online();
  FakeSocket.last.close(1000, "deleted");
  expect(client.store.status.get()).toMatchObject({ phase: "refused", refusal: { code: 8 } });
});

test("a link lost during a catch-up is followed by a snapshot, after its end by a replay", async () => {
  const client = await online();
  FakeSocket.last.notify(delta("x", 4), delta("y"));
  expect(client.store.status.get()).toMatchObject({ phase: "online", loading: false });
  FakeSocket.last.close(1006);
  await vi.advanceTimersByTimeAsync(500);
  FakeSocket.last.onopen?.();
  expect(FakeSocket.last.of("hello")[0]?.resume).toBeNull();
  FakeSocket.last.welcome({ resume: "snapshot" });
  FakeSocket.last.notify({ type: "commit", v: 1, session_id: "s", seq: 9 });
  FakeSocket.last.notify(delta("z"), message("commit", 12));
  FakeSocket.last.close(1006);
  await vi.advanceTimersByTimeAsync(1000);
  FakeSocket.last.onopen?.();
  expect(FakeSocket.last.of("hello")[0]?.resume).toEqual({ epoch: "e", seq: 12 });
});

test("maxReconnectAttempts ends the attempts", async () => {
  const client = made({ maxReconnectAttempts: 2 });
  FakeSocket.isReachable = false;
  client.connect();
  await vi.advanceTimersByTimeAsync(60_000);
  expect([FakeSocket.made.length, phase(client)]).toEqual([3, "idle"]);
});

test("links that break soon after the server's answer increase the delays, but do not end the attempts", async () => {
  const client = await online({ maxReconnectAttempts: 6, random: () => 1 });
  const waits: number[] = [];
  for (let round = 0; round < 12; round += 1) {
    FakeSocket.last.close(1006);
    const { phase, retryAt } = client.store.status.get();
    expect(phase).toBe("waiting");
    waits.push((retryAt as number) - Date.now());
    await vi.advanceTimersByTimeAsync(waits.at(-1) as number);
    FakeSocket.last.onopen?.();
    FakeSocket.last.welcome({ resume: "replay" });
  }
  expect(waits).toEqual([1000, 2000, 4000, 8000, ...Array(8).fill(16_000)]);
});

test("after the last attempt the client waits, keeps its inputs, and tries again when network or page return", async () => {
  const window = new EventTarget();
  vi.stubGlobal("addEventListener", window.addEventListener.bind(window));
  try {
    const client = await online({ maxReconnectAttempts: 1 });
    for (const hope of ["online", "focus"]) {
      FakeSocket.isReachable = false;
      FakeSocket.last.close(1006);
      await vi.advanceTimersByTimeAsync(60_000);
      expect(client.store.status.get()).toMatchObject({ phase: "idle", reason: "closed with 1006" });
      const id = client.sendText(`before ${hope}`);
      expect(client.store.outgoing.get()).toMatchObject([{ id, phase: "waiting" }]);
      FakeSocket.isReachable = true;
      window.dispatchEvent(new Event(hope));
      await waitUntilDrawn();
      FakeSocket.last.welcome({ resume: "replay" });
      expect(FakeSocket.last.of("input")).toMatchObject([{ id }]);
      FakeSocket.last.notify({ type: "input", v: 1, session_id: "s", turn_id: "t1", id, input_type: "text", data: {} });
      expect(client.store.outgoing.get()).toEqual([]);
    }
    const made = FakeSocket.made.length;
    window.dispatchEvent(new Event("focus"));
    await waitUntilDrawn();
    expect(FakeSocket.made).toHaveLength(made); // the connection is open
    client.disconnect();
    client.store.flush();
    expect(client.store.status.get()).toMatchObject({ phase: "idle", reason: null });
  } finally {
    vi.unstubAllGlobals();
  }
});

test("disconnect is reported once and stops every timer, and connect works again after it", async () => {
  let left = 0;
  const client = await online({}, { onDisconnect: () => (left += 1) });
  client.disconnect();
  expect([left, phase(client), vi.getTimerCount()]).toEqual([1, "idle", 0]);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(FakeSocket.made).toHaveLength(1);
  client.connect();
  await waitUntilDrawn();
  FakeSocket.last.welcome({ resume: "replay" });
  FakeSocket.last.close(1006);
  expect([left, phase(client)]).toEqual([2, "waiting"]);
  client.disconnect();
  expect(vi.getTimerCount()).toBe(0);
});

test("after a frame that cannot be read, or a commit that does not fit, a snapshot follows", async () => {
  const client = await online();
  FakeSocket.last.notify(delta("x", 2));
  FakeSocket.last.notify(message("patch", 3, { ops: [{ op: "remove", target: "nobody" }] }));
  FakeSocket.last.notify(message("commit", 3));
  expect(phase(client)).toBe("waiting");
  await vi.advanceTimersByTimeAsync(500);
  FakeSocket.last.onopen?.();
  expect(FakeSocket.last.of("hello")[0]?.resume).toBeNull();
});

test("a returning network and a page that becomes visible end the wait at once", async () => {
  const window = new EventTarget();
  const page = Object.assign(new EventTarget(), { visibilityState: "visible" });
  const seen = () => page.dispatchEvent(new Event("visibilitychange"));
  vi.stubGlobal("addEventListener", window.addEventListener.bind(window));
  vi.stubGlobal("document", page);
  try {
    const client = await online();
    FakeSocket.last.close(1006);
    window.dispatchEvent(new Event("online"));
    await waitUntilDrawn();
    expect(FakeSocket.made).toHaveLength(2);
    FakeSocket.last.close(1006);
    seen();
    await waitUntilDrawn();
    expect(FakeSocket.made).toHaveLength(3);
    FakeSocket.last.welcome({ resume: "replay" });
    seen();
    expect(phase(client)).toBe("online"); // a message has just arrived
    await vi.advanceTimersByTimeAsync(31_000);
    seen();
    await waitUntilDrawn();
    expect(FakeSocket.made).toHaveLength(4);
    FakeSocket.last.close(1006);
    client.disconnect();
    await vi.advanceTimersByTimeAsync(31_000);
    seen();
    window.dispatchEvent(new Event("online"));
    window.dispatchEvent(new Event("focus"));
    await waitUntilDrawn();
    expect(FakeSocket.made).toHaveLength(4); // after disconnect, events have no effect
  } finally {
    vi.unstubAllGlobals();
  }
});

test("connect, and a window that gets the focus, end the wait at once", async () => {
  const window = new EventTarget();
  vi.stubGlobal("addEventListener", window.addEventListener.bind(window));
  try {
    const client = await online();
    const focus = () => window.dispatchEvent(new Event("focus"));
    for (const [made, begin] of [() => client.connect(), focus].entries()) {
      FakeSocket.last.close(1006);
      expect(phase(client)).toBe("waiting");
      begin();
      await waitUntilDrawn();
      expect(FakeSocket.made).toHaveLength(made + 2);
      expect(phase(client)).toBe("connecting");
      FakeSocket.last.welcome({ resume: "replay" });
    }
    client.disconnect();
  } finally {
    vi.unstubAllGlobals();
  }
});

test("a network that is back while a link opens replaces the link, which may have died with the network", async () => {
  const window = new EventTarget();
  vi.stubGlobal("addEventListener", window.addEventListener.bind(window));
  try {
    const client = made();
    client.connect();
    await waitUntilDrawn();
    window.dispatchEvent(new Event("online"));
    await waitUntilDrawn();
    expect(FakeSocket.made.map((socket) => socket.closed)).toEqual([true, false]);
    client.disconnect();
  } finally {
    vi.unstubAllGlobals();
  }
});

test("another session while the first one connects is asked for on a new link", async () => {
  const client = made({ sessionId: "first" });
  client.connect();
  await waitUntilDrawn();
  client.setSessionId("other");
  await waitUntilDrawn();
  expect(FakeSocket.made.map((socket) => socket.closed)).toEqual([true, false]);
  FakeSocket.last.welcome({ session_id: "other" });
  expect(FakeSocket.last.of("hello")).toMatchObject([{ session_id: "other" }]);
  expect(phase(client)).toBe("online");
  client.disconnect();
});

test("a token may be a function, which is called for each connection", async () => {
  let count = 0;
  const client = await online({ token: async () => `token ${(count += 1)}` });
  FakeSocket.last.close(1006);
  await vi.advanceTimersByTimeAsync(500);
  FakeSocket.last.onopen?.();
  expect(FakeSocket.made.map((socket) => socket.of("hello")[0]?.token)).toEqual(["token 1", "token 2"]);
  client.disconnect();
});

test("another session begins with an empty screen, and the old one is ignored", async () => {
  const client = await online();
  const old = FakeSocket.last;
  old.notify(delta("of the old", 3));
  client.setSessionId("other");
  expect(client.store.turnIds.get()).toEqual([]);
  expect(client.store.status.get()).toMatchObject({ sessionId: "other", loading: true });
  await waitUntilDrawn();
  old.notify(delta("late", 4));
  expect(FakeSocket.made).toEqual([old]); // on the existing connection
  expect(old.of("hello").slice(1)).toMatchObject([{ session_id: "other", resume: null }]);
  old.notify({ ...SESSION, session_id: "other" });
  expect(client.store.turnIds.get()).toEqual([]);
  expect(client.store.status.get()).toMatchObject({ phase: "online", loading: false });
});

test("another session is requested while the phase stays online, and nothing is sent until its answer", async () => {
  const phases: string[] = [];
  const client = await online();
  client.store.status.subscribe(() => phases.push(client.store.status.get().phase));
  client.setSessionId(null, { workflow: "cars" });
  client.sendText("hello");
  expect(client.connected).toBe(false);
  expect(FakeSocket.last.of("hello").at(-1)).toMatchObject({ session_id: null, workflow: "cars" });
  expect(FakeSocket.last.of("input")).toEqual([]);
  FakeSocket.last.notify({ ...SESSION, session_id: "new", workflow: "cars" });
  expect(FakeSocket.last.of("input")).toMatchObject([{ session_id: "new", data: { text: "hello" } }]);
  client.store.flush();
  expect(client.store.status.get()).toMatchObject({ phase: "online", sessionId: "new", workflow: "cars" });
  expect(new Set(phases)).toEqual(new Set(["online"]));
});

test("after two switches at once, the second session is requested on a new link, still online", async () => {
  const client = await online();
  const old = FakeSocket.last;
  client.setSessionId("b");
  client.setSessionId("c");
  await waitUntilDrawn();
  expect(old.closed).toBe(true);
  old.notify({ ...SESSION, session_id: "b" });
  FakeSocket.last.welcome({ session_id: "c" });
  expect(FakeSocket.made).toHaveLength(2);
  expect(client.store.status.get()).toMatchObject({ phase: "online", sessionId: "c", loading: false });
});

test("a second hello without an answer counts as a lost connection", async () => {
  const client = await online();
  client.setSessionId("other");
  await vi.advanceTimersByTimeAsync(10_000);
  expect(client.store.status.get()).toMatchObject({ phase: "waiting", reason: "no answer" });
  client.disconnect();
});

test("a refused session is reported, and the next one connects", async () => {
  const client = await online();
  client.setSessionId("nowhere");
  FakeSocket.last.notify({ type: "error", v: 1, payload: { error: "no such session", code: 8 } });
  expect(client.store.status.get()).toMatchObject({ phase: "refused", refusal: { code: 8 } });
  client.setSessionId("s2");
  await waitUntilDrawn();
  FakeSocket.last.welcome({ session_id: "s2" });
  expect(client.store.status.get()).toMatchObject({ phase: "online", refusal: null });
});

test("the old screen can be kept until the other session has loaded, for a second at most", async () => {
  const client = await online();
  FakeSocket.last.notify(delta("of the old", 3));
  client.setSessionId("other", { keep: true });
  FakeSocket.last.notify(delta(" and late", 4));
  expect(client.store.status.get()).toMatchObject({ sessionId: "other", loading: true, stale: true });
  expect(client.store.turnIds.get()).toEqual(["t1"]);
  expect(client.store.turn("t1").get()?.output[0]?.props.content).toBe("of the old");
  FakeSocket.last.notify({ ...SESSION, session_id: "other" });
  expect(client.store.status.get()).toMatchObject({ loading: false, stale: false });
  expect(client.store.turnIds.get()).toEqual([]);
  FakeSocket.last.notify(delta("of the other", 1));
  client.setSessionId("third", { keep: true });
  await vi.advanceTimersByTimeAsync(999);
  expect(client.store.turnIds.get()).toEqual(["t1"]);
  await vi.advanceTimersByTimeAsync(1);
  expect(client.store.status.get()).toMatchObject({ phase: "online", loading: true, stale: false });
  expect(client.store.turnIds.get()).toEqual([]);
  client.disconnect();
});

test("if no socket opens, server-sent events are tried at once and used from then on", async () => {
  const requested: string[] = [];
  const body = () =>
    new ReadableStream({
      start(stream) {
        const frame = JSON.stringify([
          { type: "hello", v: 1, capabilities: { components: [], features: ["resume"] } },
          SESSION,
        ]);
        stream.enqueue(new TextEncoder().encode(`data: ${frame}\n\n`));
      },
    });
  const answer = (url: string) => {
    requested.push(url);
    return Promise.resolve(new Response(body(), { headers: { "content-type": "text/event-stream" } }));
  };
  FakeSocket.isReachable = false;
  const client = made({ transport: "auto", fetch: answer as typeof fetch });
  client.connect();
  await vi.waitFor(() => expect(phase(client)).toBe("online"));
  expect(client.store.status.get().transport).toBe("sse");
  expect(requested[0]).toMatch(/^http:\/\/agent\.example\/app\/_arp\/v1\/events\?hello=/);
  client.disconnect();
  expect(vi.getTimerCount()).toBe(0);
});

test("without server-sent events the client returns to sockets, after a refusal it does not", async () => {
  const client = made({ transport: "auto", fetch: async () => new Response("", { status: 404 }) });
  FakeSocket.isReachable = false;
  client.connect();
  await vi.waitFor(() => expect(phase(client)).toBe("waiting"));
  client.disconnect();
  const refused = made({ transport: "auto", fetch: async () => new Response("", { status: 401 }) });
  refused.connect();
  await vi.waitFor(() => expect(phase(refused)).toBe("refused"));
  expect(refused.store.status.get().refusal?.code).toBe(14);
});
