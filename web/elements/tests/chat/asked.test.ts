/** W15: which message is at the top of the view, from its bubble to its turn. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FakeSocket, message } from "../../../core/tests/fakes.js";
import type { ArpChat } from "../../src/chat/chat.js";
import { Follow } from "../../src/chat/timeline/follow.js";
import { entered, left, report } from "./stage.js";

let chat: ArpChat;
/** What was asked of the view, in order. */
let received: string[];

/** As which the message is drawn. */
const nameOf = (element: HTMLElement | null) => element?.dataset.turn ?? (element ? "bubble" : "none");
const status = (turn: string, status: string, seq: number) => message("turn", seq, { turn_id: turn, status });
const input = (turn: string, id: string, seq: number) =>
  message("input", seq, { turn_id: turn, input_type: "text", data: { text: "Hi" }, id });
/** Says something, and draws it; returns the input. */
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

test("W15 the bubble goes to the top at once, and its turn takes its place", async () => {
  const id = await say("Hi");
  await report(chat, input("t1", id, 1), status("t1", "running", 2));
  await report(chat, status("t1", "completed", 3));
  expect(received).toEqual(["ask bubble", "redrawn t1"]);
});

test("W24 what is queued is left where it is until its turn comes", async () => {
  await report(chat, input("t1", "other", 1), status("t1", "running", 2));
  const id = await say("Hi");
  await report(chat, input("t2", id, 3), status("t2", "queued", 4));
  expect(received).toEqual([]);
  await report(chat, status("t1", "completed", 5), status("t2", "running", 6));
  expect(received).toEqual(["ask t2 in its place"]);
});

test("W15 what takes the place of what runs goes to the top when it begins", async () => {
  await report(chat, input("t1", "other", 1), status("t1", "running", 2));
  const id = await say("Hi");
  await report(chat, status("t1", "cancelled", 3), input("t2", id, 4), status("t2", "running", 5));
  expect(received).toEqual(["ask t2"]);
});

test("W17 anyone who reads elsewhere when it begins is left there", async () => {
  await report(chat, input("t1", "other", 1), status("t1", "running", 2));
  const id = await say("Hi");
  vi.spyOn(Follow.prototype, "following", "get").mockReturnValue(false);
  await report(chat, status("t1", "cancelled", 3), input("t2", id, 4), status("t2", "running", 5));
  vi.spyOn(Follow.prototype, "following", "get").mockReturnValue(true);
  await report(chat, status("t2", "completed", 6));
  expect(received).toEqual([]);
});

test("W15 a refused message stays at the top with what is wrong, and what others say goes nowhere", async () => {
  const id = await say("Hi");
  await report(chat, { type: "error", v: 1, session_id: "s", payload: { error: "no", code: 4003, id } });
  await report(chat, input("t1", "other", 1), status("t1", "running", 2));
  expect(received).toEqual(["ask bubble"]);
});
