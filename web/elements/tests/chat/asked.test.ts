/** W15: the input at the top of the view, first as a bubble and then as a turn. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FakeSocket, message } from "../../../core/tests/fakes.js";
import type { ArpChat } from "../../src/chat/chat.js";
import { Follow } from "../../src/chat/timeline/follow.js";
import { entered, left, report } from "./stage.js";

let chat: ArpChat;
/** Calls of `Follow`, in order. */
let received: string[];

/** Return the name of the element that draws the input: its turn, or `bubble`. */
const nameOf = (element: HTMLElement | null) => element?.dataset.turn ?? (element ? "bubble" : "none");
const status = (turn: string, status: string, seq: number) => message("turn", seq, { turn_id: turn, status });
const input = (turn: string, id: string, seq: number) =>
  message("input", seq, { turn_id: turn, input_type: "text", data: { text: "Hi" }, id });
/** Send a text and draw it. Return the id of the input. */
async function say(text: string): Promise<string> {
  chat.say(text);
  await report(chat);
  return FakeSocket.last.of("input").at(-1)?.id as string;
}

beforeEach(async () => {
  received = [];
  vi.spyOn(Follow.prototype, "ask").mockImplementation(
    (element, hasRoom) => void received.push(`ask ${nameOf(element)}${hasRoom === false ? " in its place" : ""}`),
  );
  vi.spyOn(Follow.prototype, "redrawn").mockImplementation(
    (element) => void received.push(`redrawn ${nameOf(element)}`),
  );
  chat = await entered();
  await report(chat);
  received = [];
});

afterEach(() => left(chat));

test("W15 the bubble moves to the top at once, and is then replaced by its turn", async () => {
  const id = await say("Hi");
  await report(chat, input("t1", id, 1), status("t1", "running", 2));
  await report(chat, status("t1", "completed", 3));
  expect(received).toEqual(["ask bubble", "redrawn t1"]);
});

test("W24 a queued input is not scrolled to until its turn begins", async () => {
  await report(chat, input("t1", "other", 1), status("t1", "running", 2));
  const id = await say("Hi");
  await report(chat, input("t2", id, 3), status("t2", "queued", 4));
  expect(received).toEqual([]);
  await report(chat, status("t1", "completed", 5), status("t2", "running", 6));
  expect(received).toEqual(["ask t2 in its place"]);
});

test("W15 an input that replaces the running turn moves to the top when its turn begins", async () => {
  await report(chat, input("t1", "other", 1), status("t1", "running", 2));
  const id = await say("Hi");
  await report(chat, status("t1", "cancelled", 3), input("t2", id, 4), status("t2", "running", 5));
  expect(received).toEqual(["ask t2"]);
});

test("W17 a reader who has scrolled away when the turn begins is not moved", async () => {
  await report(chat, input("t1", "other", 1), status("t1", "running", 2));
  const id = await say("Hi");
  vi.spyOn(Follow.prototype, "following", "get").mockReturnValue(false);
  await report(chat, status("t1", "cancelled", 3), input("t2", id, 4), status("t2", "running", 5));
  vi.spyOn(Follow.prototype, "following", "get").mockReturnValue(true);
  await report(chat, status("t2", "completed", 6));
  expect(received).toEqual([]);
});

test("W15 a refused input stays at the top with its error; an input of another screen is not scrolled to", async () => {
  const id = await say("Hi");
  await report(chat, { type: "error", v: 1, session_id: "s", payload: { error: "no", code: 4003, id } });
  await report(chat, input("t1", "other", 1), status("t1", "running", 2));
  expect(received).toEqual(["ask bubble"]);
});
