/** The card of a failed turn, with details under `arp serve --debug`. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { delta, message } from "../../../core/tests/fakes.js";
import type { ArpChat } from "../../src/chat/chat.js";
import { entered, left, report } from "./stage.js";

const TRACEBACK = 'Traceback (most recent call last):\n  File "app.py", line 7, in agent\nValueError: <b>x</b>\u202e';

let chat: ArpChat;

beforeEach(async () => {
  chat = await entered();
  await report(
    chat,
    message("input", 1, { input_type: "text", data: { text: "Hi" }, id: "i" }),
    delta("So far", 2),
    message("error", 3, { payload: { error: "the agent failed", code: 18 } }),
    message("turn", null, { status: "failed" }),
    message("commit", 4, { final: true }),
  );
});

afterEach(() => left(chat));

/** Wait until there are this many error cards, and return them. */
const cards = (count: number) =>
  vi.waitFor(() => {
    const found = [...chat.querySelectorAll(".arp-trouble")];
    expect(found.length).toBe(count);
    return found;
  });

test("an error without details has no fold", async () => {
  await cards(1);
  expect(chat.querySelector(".arp-trouble details")).toBeNull();
});

test("details of another error are folded in its own card, as plain text without deceptive characters", async () => {
  await report(chat, message("error", null, { payload: { error: "a hint", code: 18, debug: TRACEBACK } }));
  const details = (await cards(2))[1]?.querySelector("details");
  expect(details?.open).toBe(false);
  expect(details?.querySelector("summary")?.textContent).toBe("Details");
  expect(details?.querySelector("pre")?.textContent).toBe(TRACEBACK.replace("\u202e", "⟨U+202E⟩"));
  expect(details?.querySelector("b")).toBeNull();
});

test("details of the same error are added to its card, which keeps its button", async () => {
  await report(chat, message("error", null, { payload: { error: "the agent failed", code: 18, debug: TRACEBACK } }));
  const [card] = await vi.waitFor(() => {
    expect(chat.querySelector(".arp-trouble details")).not.toBeNull();
    return cards(1);
  });
  expect(card?.querySelector("p")?.textContent).toBe("The agent failed.");
  expect(card?.querySelector("pre")?.textContent).toContain("ValueError");
  expect(card?.querySelector(".arp-button")?.textContent).toBe("Try again");
});
