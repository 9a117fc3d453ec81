import { expect, test, vi } from "vitest";
import { ArpError, createSessionAPI } from "../src/index.js";

function api(...answers: (() => Response | Promise<Response>)[]) {
  const fetcher = vi.fn(async (_url: string, _init?: RequestInit) => (answers.shift() as () => Response)());
  const options = { fetch: fetcher as never, token: () => "secret", headers: { "X-A": "1" } };
  return { sessions: createSessionAPI("http://agent.example/app/", options), fetcher };
}

const json = (value: unknown, init?: ResponseInit) => () => new Response(JSON.stringify(value), init);
const dead = () => Promise.reject(new TypeError("dead"));

test("ids and queries are escaped, and token and headers are sent", async () => {
  const { sessions, fetcher } = api(json({ id: "a/b?" }), json([]), json([]));
  await sessions.getSession("a/b?");
  await sessions.listSessions("/chat", "ada");
  await sessions.listSessions("");
  expect(fetcher.mock.calls.map(([url]) => url)).toEqual([
    "http://agent.example/app/_api/chats/a%2Fb%3F",
    "http://agent.example/app/_api/chats?workflow=%2Fchat&owner=ada",
    "http://agent.example/app/_api/chats",
  ]);
  expect(fetcher.mock.calls[0]?.[1]?.headers).toEqual({ Authorization: "Bearer secret", "X-A": "1" });
});

test("the four functions of the draft return an empty result on a failure", async () => {
  const { sessions } = api(dead, dead, dead, dead);
  expect(await sessions.listSessions("/chat")).toEqual([]);
  expect(await sessions.getSession("s")).toBeNull();
  expect(await sessions.deleteSession("s")).toBe(false);
  expect(await sessions.listWorkflows()).toEqual([]);
});

test("the other functions reject with the error", async () => {
  const refusal = [{ type: "error", v: 1, payload: { error: "not yours", code: 8 } }];
  const { sessions } = api(dead, json(refusal, { status: 404 }), () => new Response("", { status: 502 }));
  await expect(sessions.page()).rejects.toMatchObject({ status: 0, payload: { code: 0 } });
  await expect(sessions.history("s")).rejects.toMatchObject({ status: 404, payload: { code: 8 } });
  await expect(sessions.remove("s")).rejects.toEqual(new ArpError({ error: "HTTP 502", code: 11 }, 502));
});

test("a deletion continues when the page is closed, and returns what could not be deleted", async () => {
  const left = { keeper: "opencode", id: "s1", reason: "opencode cannot delete sessions", isRetried: false };
  const { sessions, fetcher } = api(json({ deleted: "s", remains: [left] }), json({ deleted: "s" }));
  expect(await sessions.remove("s")).toEqual([left]);
  expect(fetcher.mock.calls[0]?.[1]).toMatchObject({ method: "DELETE", keepalive: true });
  expect(await sessions.remove("s")).toEqual([]);
});

test("a page has the cursor of the next one", async () => {
  const { sessions, fetcher } = api(json([{ id: "a" }], { headers: { "x-arp-next": "n1" } }), json([]));
  expect(await sessions.page({ limit: 1 })).toEqual({ sessions: [{ id: "a" }], next: "n1" });
  expect(await sessions.page({ before: "n1", workflow: "/chat" })).toEqual({ sessions: [], next: null });
  expect(fetcher.mock.calls[1]?.[0]).toBe("http://agent.example/app/_api/chats?before=n1&workflow=%2Fchat");
});

test("chats can be renamed, pinned and searched", async () => {
  const row = { id: "a", title: "Name", pinned: true };
  const { sessions, fetcher } = api(json(row), json([]));
  expect(await sessions.update("a", { title: "Name", pinned: true })).toEqual(row);
  await sessions.page({ query: "two words" });
  const [url, init] = fetcher.mock.calls[0] as [string, RequestInit];
  expect([url, init.method, init.body]).toEqual([
    "http://agent.example/app/_api/chats/a",
    "PATCH",
    '{"title":"Name","pinned":true}',
  ]);
  expect(fetcher.mock.calls[1]?.[0]).toBe("http://agent.example/app/_api/chats?query=two+words");
});

test("a cookie is requested for files", async () => {
  const { sessions, fetcher } = api(() => new Response(null, { status: 204 }));
  await sessions.openFiles();
  expect(fetcher.mock.calls[0]).toMatchObject(["http://agent.example/app/_api/blobs/cookie", { method: "POST" }]);
});

test("without a token no cookie is requested", async () => {
  const fetcher = vi.fn();
  await createSessionAPI("http://agent.example/app/", { fetch: fetcher as never }).openFiles();
  expect(fetcher).not.toHaveBeenCalled();
});

test("changes of the list are reported, over lost streams, until the watch ends", async () => {
  const stream =
    (...events: string[]) =>
    () =>
      new Response(events.join(""));
  const chat = 'event: chat\ndata: {"id":"a"}\n\n';
  const { sessions, fetcher } = api(
    stream(": \n\n", chat, 'event: removed\ndata: {"id":"b"}\n\n', "event: close\ndata: {}\n\n"),
    dead,
    stream(chat),
  );
  vi.useFakeTimers();
  const received: string[] = [];
  const stop = sessions.watch({
    opened: () => received.push("opened"),
    chat: ({ id }) => received.push(`chat ${id}`),
    removed: (id) => received.push(`removed ${id}`),
    closed: () => received.push("closed"),
  });
  await vi.waitFor(() => expect(received.at(-1)).toBe("closed"));
  expect(received).toEqual(["opened", "chat a", "removed b", "closed"]);
  await vi.waitFor(async () => {
    await vi.advanceTimersByTimeAsync(4000);
    expect(received.filter((one) => one === "opened")).toHaveLength(2);
  });
  stop();
  const requested = fetcher.mock.calls.length;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(fetcher.mock.calls).toHaveLength(requested);
  vi.useRealTimers();
});

test("a hidden page holds no stream of the list", async () => {
  const page = Object.assign(new EventTarget(), { visibilityState: "hidden" });
  vi.stubGlobal("document", page);
  const look = (state: string) => {
    page.visibilityState = state;
    page.dispatchEvent(new Event("visibilitychange"));
  };
  const signals: AbortSignal[] = [];
  const fetcher = vi.fn(async (_: string, { signal }: { signal: AbortSignal }) => {
    signals.push(signal);
    const body = new ReadableStream({
      start: (stream) => signal.addEventListener("abort", () => stream.error(signal.reason)),
    });
    return new Response(body);
  });
  const received: string[] = [];
  try {
    const sessions = createSessionAPI("http://agent.example/", { fetch: fetcher as never });
    const stop = sessions.watch({ opened: () => received.push("opened"), closed: () => received.push("closed") });
    await new Promise((resolve) => setTimeout(resolve));
    expect(signals).toHaveLength(0);
    look("visible");
    await vi.waitFor(() => expect(received).toEqual(["opened"]));
    look("hidden");
    await vi.waitFor(() => expect(received).toEqual(["opened", "closed"]));
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
    look("visible");
    await vi.waitFor(() => expect(received).toEqual(["opened", "closed", "opened"]));
    stop();
    expect(signals[1]?.aborted).toBe(true);
  } finally {
    vi.unstubAllGlobals();
  }
});
