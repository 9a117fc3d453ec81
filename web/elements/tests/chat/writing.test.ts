/** A message that is being written: only its last text is updated, with the same result as a full redraw. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { delta, message } from "../../../core/tests/fakes.js";
import type { ArpChat } from "../../src/chat/chat.js";
import { entered, left, report } from "./stage.js";

let chat: ArpChat;
let seq = 0;

const say = (text: string) => delta(text, ++seq);
const of = (type: string, fields: object) => message(type, ++seq, fields);
const shown = () => chat.querySelector("arp-message .arp-reply")?.textContent?.replace(/\s+/g, " ").trim() ?? "";

const received = (...messages: object[]) => report(chat, ...messages);

/** Wait until the written text is drawn. Prose pauses between two drawings. */
const shows = (what: string | RegExp) => vi.waitFor(() => expect(shown()).toMatch(what));

beforeEach(async () => {
  chat = await entered();
  seq = 0;
  await received(
    of("input", { input_type: "text", data: { text: "Hi" }, id: "i" }),
    of("turn", { status: "running" }),
    say("One"),
  );
  await shows("One");
});

afterEach(() => left(chat));

test("W14 while only the last text grows, the rest of the message is not drawn", async () => {
  await received(say(" two"));
  const redrawn = vi.spyOn(chat.querySelector("arp-message") as unknown as { render(): unknown }, "render");
  await received(say(" three"));
  await received(say(" four"));
  await shows("One two three four");
  expect(redrawn).not.toHaveBeenCalled();
});

test("a tool call between two texts is drawn between them, and the text after it grows", async () => {
  await received(say(" two"));
  await received(of("tool_start", { payload: { tool: "search", args: "{}", call_id: "c" } }));
  await received(say(" three"));
  await received(say(" four"));
  await shows(/One two.*search.*three four/);
});

test("a text that is changed back to an earlier text is drawn again", async () => {
  await received(say(" two"));
  await shows("One two");
  await received(
    of("patch", { ops: [{ op: "update", target: "t1/1", path: "props.content", value: "One" }] }),
    of("commit", {}),
    of("turn", { status: "waiting" }),
  );
  await vi.waitFor(() => expect(shown()).toMatch(/One$/));
});

test("the end of a turn is drawn, whatever its state was before", async () => {
  await received(say(" two"));
  await received(of("commit", { final: true }), of("turn", { status: "cancelled" }));
  await shows("One two");
  expect(chat.querySelector(".arp-ending")?.textContent).toContain("Stopped");
});
