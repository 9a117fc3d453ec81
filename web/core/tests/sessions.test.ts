import { expect, test, vi } from "vitest";
import { ArpError, createSessionAPI } from "../src/index.js";

function api(...answers: (() => Response | Promise<Response>)[]) {
  const fetcher = vi.fn(async (_url: string, _init?: RequestInit) => (answers.shift() as () => Response)());
  const options = { fetch: fetcher as never, token: () => "secret", headers: { "X-A": "1" } };
  return { sessions: createSessionAPI("http://agent.example/app/", options), fetcher };
}

const json = (value: unknown, init?: ResponseInit) => () => new Response(JSON.stringify(value), init);
const dead = () => Promise.reject(new TypeError("dead"));

test("ids and queries are escaped, token and headers go along", async () => {
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

test("the draft's four answer a failure with nothing found", async () => {
  const { sessions } = api(dead, dead, dead, dead);
  expect(await sessions.listSessions("/chat")).toEqual([]);
  expect(await sessions.getSession("s")).toBeNull();
  expect(await sessions.deleteSession("s")).toBe(false);
  expect(await sessions.listWorkflows()).toEqual([]);
});

test("the others say what failed", async () => {
  const refusal = [{ type: "error", v: 1, payload: { error: "not yours", code: 8 } }];
  const { sessions } = api(dead, json(refusal, { status: 404 }), () => new Response("", { status: 502 }));
  await expect(sessions.page()).rejects.toMatchObject({ status: 0, payload: { code: 0 } });
  await expect(sessions.history("s")).rejects.toMatchObject({ status: 404, payload: { code: 8 } });
  await expect(sessions.remove("s")).rejects.toEqual(new ArpError({ error: "HTTP 502", code: 11 }, 502));
});

test("a page names the next", async () => {
  const { sessions, fetcher } = api(json([{ id: "a" }], { headers: { "x-arp-next": "n1" } }), json([]));
  expect(await sessions.page({ limit: 1 })).toEqual({ sessions: [{ id: "a" }], next: "n1" });
  expect(await sessions.page({ before: "n1", workflow: "/chat" })).toEqual({ sessions: [], next: null });
  expect(fetcher.mock.calls[1]?.[0]).toBe("http://agent.example/app/_api/chats?before=n1&workflow=%2Fchat");
});
