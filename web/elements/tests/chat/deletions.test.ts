/** Deletions, which are stored until the server has confirmed them. */

import { ArpError, type ArpClient } from "@agent-rendering/core";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { Deletions, UNDO_MS, type Deleted } from "../../src/chat/sessions/deletions.js";

let kept: Map<string, string>;
let sent: string[];
let answer: (id: string) => Promise<[]>;
let ended: Deleted[];

const storage = {
  getItem: (key: string) => kept.get(key) ?? null,
  setItem: (key: string, value: string) => void kept.set(key, value),
  removeItem: (key: string) => void kept.delete(key),
};

const opened = (where: typeof storage | null = storage) => {
  const sessions = { remove: (id: string) => (sent.push(id), answer(id)) };
  const client = { sessions, address: { base: "http://h" } } as unknown as ArpClient;
  return new Deletions(client, where, (deleted) => deleted && ended.push(deleted));
};
const failing = (status: number) => () => Promise.reject(new ArpError({ error: "no", code: 1 }, status));

beforeEach(() => {
  vi.useFakeTimers();
  [kept, sent, ended] = [new Map(), [], []];
  answer = () => Promise.resolve([]);
});
afterEach(() => {
  vi.useRealTimers();
});

test("a deletion can be undone until it is sent", async () => {
  const deletions = opened();
  deletions.ask("a");
  expect(deletions.has("a")).toBe(true);
  deletions.undo("a");
  await vi.advanceTimersByTimeAsync(UNDO_MS * 2);
  expect([deletions.has("a"), sent, kept.size]).toEqual([false, [], 0]);
});

test("a deletion is sent when the time for an undo is over, and removed when the server has confirmed it", async () => {
  const deletions = opened();
  deletions.ask("a");
  await vi.advanceTimersByTimeAsync(UNDO_MS - 1);
  expect(sent).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect([sent, ended.map(({ id }) => id), deletions.has("a"), kept.size]).toEqual([["a"], ["a"], false, 0]);
});

test("the next page sends the remaining deletions, at once if the page before was closed", async () => {
  answer = () => new Promise(() => undefined); // the page is gone before the answer
  opened().ask("a");
  const closed = opened();
  closed.ask("b");
  closed.flush();
  sent = [];
  answer = () => Promise.resolve([]);
  const next = opened();
  expect([next.has("a"), next.has("b"), sent]).toEqual([true, true, ["b"]]);
  await vi.advanceTimersByTimeAsync(UNDO_MS);
  expect([sent, kept.size]).toEqual([["b", "a"], 0]);
});

test.each([[0], [401], [429], [503]])("a deletion is retried after the failure %i", async (status) => {
  answer = failing(status);
  const deletions = opened();
  deletions.ask("a");
  deletions.flush();
  await vi.advanceTimersByTimeAsync(0);
  expect([deletions.has("a"), ended]).toEqual([true, []]);
  answer = () => Promise.resolve([]);
  await vi.advanceTimersByTimeAsync(60_000);
  expect([sent, deletions.has("a")]).toEqual([["a", "a"], false]);
});

test("a chat that is already gone counts as deleted; a refused deletion ends with the reason", async () => {
  answer = (id) => failing(id === "gone" ? 404 : 403)();
  const deletions = opened();
  for (const id of ["gone", "sealed"]) deletions.ask(id);
  deletions.flush();
  await vi.advanceTimersByTimeAsync(0);
  expect(ended.map(({ id, error }) => [id, error?.status ?? null])).toEqual([
    ["gone", null],
    ["sealed", 403],
  ]);
  expect(deletions.has("sealed")).toBe(false);
});

test("an undo in another tab is valid, and its deletions are not sent early", async () => {
  const [one, other] = [opened(), opened()];
  one.ask("a");
  other.resume();
  expect(other.has("a")).toBe(true);
  other.flush();
  expect(sent).toEqual([]);
  one.undo("a");
  other.resume();
  await vi.advanceTimersByTimeAsync(UNDO_MS * 2);
  expect([other.has("a"), sent]).toEqual([false, []]);
});

test("without a storage, or with an invalid value in it, deletions last until the page is closed", async () => {
  kept.set("arp.deleting.http://h", "{");
  for (const where of [null, storage]) {
    const deletions = opened(where);
    deletions.ask("a");
    expect(deletions.has("a")).toBe(true);
    await vi.advanceTimersByTimeAsync(UNDO_MS);
    expect(deletions.has("a")).toBe(false);
  }
  expect(sent).toEqual(["a", "a"]);
});
