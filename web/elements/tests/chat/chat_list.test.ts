/** The list of chats: its pages, and changes that are reported while a page is on its way. */

import type { ArpClient, ChatRow } from "@agent-rendering/core";
import { beforeEach, expect, test } from "vitest";
import { ChatList } from "../../src/chat/sessions/chat_list.js";

interface Page {
  sessions: ChatRow[];
  next: string | null;
}

interface Listener {
  chat(row: ChatRow): void;
  removed(id: string): void;
  opened(): void;
}

let requested: { resolve(page: Page): void; reject(error: Error): void }[];
let received: Listener;
let list: ChatList;

/** Return a row that was last changed in this minute of a fixed hour. */
function row(id: string, minute: number, more: Partial<ChatRow> = {}): ChatRow {
  const at = `2026-01-02T03:${String(minute).padStart(2, "0")}:00Z`;
  return {
    id,
    workflow_name: "agent",
    workflow_path: "/agent",
    title: id,
    pinned: false,
    created_at: at,
    updated_at: at,
    message_count: 1,
    ...more,
  } as ChatRow;
}

const shown = () => list.shown.map(({ id }) => id);

/** Answer a request, by its index in the order of requests. */
async function answer(at: number, sessions: ChatRow[], next: string | null = null): Promise<void> {
  requested[at]?.resolve({ sessions, next });
  await new Promise((resolve) => setTimeout(resolve));
}

beforeEach(() => {
  requested = [];
  const sessions = {
    page: () => new Promise<Page>((resolve, reject) => requested.push({ resolve, reject })),
    watch: (listener: Listener) => ((received = listener), () => undefined),
    remove: async () => undefined,
  };
  list = new ChatList({ sessions, address: { base: "" } } as unknown as ArpClient, () => undefined);
  list.watch();
});

test("a change that is reported while a page is on its way is not lost to the older page", async () => {
  received.opened();
  received.chat(row("new", 5));
  await answer(1, [row("new", 4, { message_count: 0 }), row("old", 1)]);
  expect(shown()).toEqual(["new", "old"]);
});

test("a page does not restore a chat that was reported as removed", async () => {
  received.removed("gone");
  await answer(0, [row("gone", 2), row("old", 1)]);
  expect(shown()).toEqual(["old"]);
});

test("a page that is requested after a change replaces the change", async () => {
  await answer(0, [row("one", 1)]);
  received.chat(row("two", 2));
  expect(shown()).toEqual(["two", "one"]);
  void list.refresh();
  await answer(1, [row("two", 3, { title: "named" })]);
  expect(list.shown.map(({ title }) => title)).toEqual(["named"]);
});

test("an older page is appended, without rows that are known or removed", async () => {
  await answer(0, [row("three", 3), row("two", 2)], "cursor");
  const more = list.more();
  received.removed("zero");
  received.chat(row("one", 9));
  await answer(1, [row("two", 2), row("one", 1), row("zero", 0)]);
  await more;
  expect(shown()).toEqual(["one", "three", "two"]);
});

test("a changed row is not added to search results; a deleted one is removed", async () => {
  void list.search("hello");
  await answer(1, [row("hello", 1), row("hello again", 0)]);
  received.chat(row("other", 5));
  received.removed("hello");
  expect(shown()).toEqual(["hello again"]);
});

test("pinned chats come first, then the newest", async () => {
  await answer(0, [row("pinned", 1, { pinned: true }), row("new", 9)]);
  received.chat(row("newer", 10));
  received.chat(row("also pinned", 3, { pinned: true }));
  expect(shown()).toEqual(["also pinned", "pinned", "newer", "new"]);
});

test("the answer to the last request counts, in whatever order the answers arrive", async () => {
  received.opened();
  await answer(1, [row("later", 2)]);
  await answer(0, [row("earlier", 1)]);
  expect(shown()).toEqual(["later"]);
});
