/** The list of chats: late answers, errors, deleted chats. */

import type { ChatSession, SessionAPI } from "@agent-rendering/core";
import { expect, test, vi } from "vitest";
import { SessionList } from "../src/session_list.js";

const chat = (id: string) => ({ id }) as ChatSession;

/** Return an API with pages that the test resolves, in any order. */
function api() {
  const pages: ((ids: string[]) => void)[] = [];
  const page = () => new Promise((resolve) => pages.push((ids) => resolve({ sessions: ids.map(chat), next: null })));
  const remove = vi.fn(async (_id: string) => undefined);
  return { api: { page, remove } as unknown as SessionAPI, pages, remove };
}

const ids = (list: SessionList) => list.cell.get().sessions.map(({ id }) => id);

test("a late answer does not replace the answer to a newer request", async () => {
  const list = new SessionList();
  const { api: server, pages } = api();
  const loads = [list.load(server), list.load(server)];
  pages[1]?.(["new"]);
  pages[0]?.(["old"]);
  await Promise.all(loads);
  expect(ids(list)).toEqual(["new"]);
});

test("a pending answer can be ignored", async () => {
  const list = new SessionList();
  const { api: server, pages } = api();
  const load = list.load(server);
  list.ignorePending();
  pages[0]?.(["late"]);
  await load;
  expect(ids(list)).toEqual([]);
});

test("an error is in the cell, keeps the list, and is removed by the next answer", async () => {
  const list = new SessionList();
  const { api: server, pages, remove } = api();
  const changes = vi.fn();
  const stop = list.cell.subscribe(changes);
  const load = list.load(server);
  pages[0]?.(["a", "b"]);
  await load;
  remove.mockRejectedValueOnce(new Error("no"));
  expect(await list.delete(server, "a")).toBe(false);
  expect([ids(list), list.cell.get().error?.message]).toEqual([["a", "b"], "no"]);
  expect(await list.delete(server, "a")).toBe(true);
  expect(ids(list)).toEqual(["b"]);
  expect(changes).toHaveBeenCalledTimes(3);
  stop();
  const again = list.load(server);
  pages[1]?.(["b"]);
  await again;
  expect([list.cell.get().error, changes.mock.calls.length]).toEqual([null, 3]);
});

test("without an API nothing is loaded or deleted", async () => {
  const list = new SessionList();
  await list.load(null);
  expect([await list.delete(null, "a"), list.cell.get().sessions]).toEqual([false, []]);
});
