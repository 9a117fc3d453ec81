/** W15: which message stands at the top of the view, from its bubble to its turn. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FakeSocket, message } from "../../../core/tests/fakes.js";
import type { ArpChat } from "../../src/chat/chat.js";
import { Follow } from "../../src/chat/follow.js";
import { entered, left, tell } from "./stage.js";

let chat: ArpChat;
/** What was asked of the view, in order. */
let told: string[];

/** As which the message is drawn. */
const nameOf = (element: HTMLElement | null) => element?.dataset.turn ?? (element ? "bubble" : "none");
const status = (turn: string, status: string, seq: number) => message("turn", seq, { turn_id: turn, status });
const input = (turn: string, id: string, seq: number) => message("input", seq, { turn_id: turn, input_type: "text", data: { text: "Hi" }, id });
/** Says something, and draws it; gives the input. */
async function say(text: string): Promise<string> {
  chat.say(text);
  await tell(chat);
  return FakeSocket.last.of("input").at(-1)?.id as string;
}

beforeEach(async () => {
  told = [];
  vi.spyOn(Follow.prototype, "ask").mockImplementation((element, hasRoom) => void told.push(`ask ${nameOf(element)}${hasRoom === false ? " in its place" : ""}`));
  vi.spyOn(Follow.prototype, "redrawn").mockImplementation((element) => void told.push(`redrawn ${nameOf(element)}`));
  chat = await entered();
  await tell(chat);
  told = [];
});

afterEach(() => left(chat));

test("W15 the bubble goes to the top at once, and its turn takes its place", async () => {
  const id = await say("Hi");
  await tell(chat, input("t1", id, 1), status("t1", "running", 2));
  await tell(chat, status("t1", "completed", 3));
  expect(told).toEqual(["ask bubble", "redrawn t1"]);
});

test("W24 what waits in line is left where it is until its turn comes", async () => {
  await tell(chat, input("t1", "other", 1), status("t1", "running", 2));
  const id = await say("Hi");
  await tell(chat, input("t2", id, 3), status("t2", "queued", 4));
  expect(told).toEqual([]);
  await tell(chat, status("t1", "completed", 5), status("t2", "running", 6));
  expect(told).toEqual(["ask t2 in its place"]);
});

test("W15 what takes the place of what runs goes to the top when it begins", async () => {
  await tell(chat, input("t1", "other", 1), status("t1", "running", 2));
  const id = await say("Hi");
  await tell(chat, status("t1", "cancelled", 3), input("t2", id, 4), status("t2", "running", 5));
  expect(told).toEqual(["ask t2"]);
});

test("W17 whoever reads elsewhere when it begins is left there", async () => {
  await tell(chat, input("t1", "other", 1), status("t1", "running", 2));
  const id = await say("Hi");
  vi.spyOn(Follow.prototype, "following", "get").mockReturnValue(false);
  await tell(chat, status("t1", "cancelled", 3), input("t2", id, 4), status("t2", "running", 5));
  vi.spyOn(Follow.prototype, "following", "get").mockReturnValue(true);
  await tell(chat, status("t2", "completed", 6));
  expect(told).toEqual([]);
});

test("W15 a refused message stays at the top with what is wrong, and what others say goes nowhere", async () => {
  const id = await say("Hi");
  await tell(chat, { type: "error", v: 1, session_id: "s", payload: { error: "no", code: 4003, id } });
  await tell(chat, input("t1", "other", 1), status("t1", "running", 2));
  expect(told).toEqual(["ask bubble"]);
});
