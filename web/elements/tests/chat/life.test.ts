/** W11, W88: a chat has one connection while it is in the document, and none otherwise. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { delta, FakeSocket, message } from "../../../core/tests/fakes.js";
import type { ArpChat } from "../../src/chat/chat.js";
import { entered, left, soon, report } from "./stage.js";

let chat: ArpChat;

/** Return the number of open connections. */
const open = () => FakeSocket.made.filter(({ closed }) => !closed).length;
const received = (...messages: object[]) => report(chat, ...messages);

beforeEach(async () => {
  chat = await entered();
  await received(message("input", 1, { input_type: "text", data: { text: "Hi" }, id: "i" }), delta("Hello", 2));
});

afterEach(() => left(chat));

test("W11 a chat that is moved within the document keeps its connection", async () => {
  const client = chat.activeClient;
  const section = document.createElement("section");
  document.body.append(section);
  section.append(chat);
  await soon();
  expect([FakeSocket.made.length, open(), chat.activeClient === client]).toEqual([1, 1, true]);
  await received(delta(" there", 3));
  await vi.waitFor(() => expect(chat.querySelector("arp-prose")?.textContent ?? "").toContain("Hello there"));
});

test("W11 outside the document a chat has no connection, whatever is set on it; back inside it has one", async () => {
  chat.remove();
  await soon();
  expect([open(), chat.activeClient]).toEqual([0, null]);
  chat.heading = "Other";
  chat.url = "http://other.example/";
  await chat.updateComplete;
  expect(open()).toBe(0);
  document.body.append(chat);
  await chat.updateComplete;
  expect([open(), FakeSocket.last.url]).toEqual([1, expect.stringContaining("other.example")]);
});

test("W11 a new address opens a new connection and closes the old one", async () => {
  chat.url = "http://other.example/";
  await chat.updateComplete;
  expect([FakeSocket.made.length, open(), FakeSocket.last.url]).toEqual([
    2,
    1,
    expect.stringContaining("other.example"),
  ]);
});

test("W88 a chat outside the document listens to no events", async () => {
  const stop = vi.spyOn(chat, "stop");
  const press = () => chat.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", cancelable: true }));
  await received(message("turn", 3, { status: "running" }));
  press();
  expect(stop).toHaveBeenCalledOnce();
  vi.spyOn(chat, "jump").mockImplementation(stop);
  chat.remove();
  await soon();
  chat.dispatchEvent(new KeyboardEvent("keydown", { key: "End", ctrlKey: true }));
  expect(stop).toHaveBeenCalledOnce();
  document.body.append(chat);
  await soon();
  chat.dispatchEvent(new KeyboardEvent("keydown", { key: "End", ctrlKey: true }));
  expect(stop).toHaveBeenCalledTimes(2); // once more, not once for each time that it entered the document
});

test("an update does not set the direction again, which would recompute the style of everything below", async () => {
  const changes = vi.fn();
  const watching = new MutationObserver((records) => changes(records.map(({ attributeName }) => attributeName)));
  watching.observe(chat, { attributes: true, attributeFilter: ["dir", "lang"] });
  chat.heading = "Another";
  await chat.updateComplete;
  await received(delta(" there", 3), message("turn", 4, { status: "running" }));
  expect(changes).not.toHaveBeenCalled();
  chat.locale = "ar";
  await vi.waitFor(() => expect([chat.dir, chat.lang]).toEqual(["rtl", "ar"]));
  await vi.waitFor(() => expect(changes.mock.lastCall?.[0]).toContain("dir")); // otherwise this test could not fail
  watching.disconnect();
});
