/** Messages of a chat without a connection, while it is unknown whether the agent works. */

import { afterEach, beforeEach, expect, type MockInstance, test, vi } from "vitest";
import { FakeSocket, HELLO, message } from "../../../core/tests/fakes.js";
import type { ArpChat } from "../../src/chat/chat.js";
import { entered, left, report } from "./stage.js";

let chat: ArpChat;
/** Part of the waiting time between two attempts to connect. It is random outside of tests. */
let part: MockInstance<() => number>;

const text = (selector: string) => chat.querySelector(selector)?.textContent?.replace(/\s+/g, " ").trim();

/** Let time pass, and draw the changes. */
async function pass(ms: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
  chat.activeClient?.store.flush();
  await chat.updateComplete;
  await Promise.all(
    [...chat.querySelectorAll("arp-banner")].map(
      (banner) => (banner as unknown as { updateComplete: Promise<void> }).updateComplete,
    ),
  );
}

beforeEach(async () => {
  part = vi.spyOn(Math, "random").mockReturnValue(0.9); // before the chat uses it
  chat = await entered();
  await report(chat);
  vi.useFakeTimers();
});

afterEach(async () => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  await left(chat);
});

test("a message that is not acknowledged after a second shows it, until it is acknowledged", async () => {
  const id = chat.activeClient?.sendText("hello?") as string;
  await pass(100);
  const mark = () => chat.querySelector<HTMLElement>(".arp-outgoing arp-late");
  expect([mark()?.textContent, mark()?.hidden]).toEqual(["Not delivered yet", true]);
  await pass(1000);
  expect(mark()?.hidden).toBe(false);
  FakeSocket.last.notify({ type: "ack", v: 1, id });
  await pass(200);
  expect([text(".arp-outgoing .arp-bubble"), mark()]).toEqual(["hello?", null]);
});

test("a message that waits for a connection shows that instead", async () => {
  chat.activeClient?.sendText("hello?");
  await pass(2000);
  FakeSocket.isReachable = false;
  FakeSocket.last.close(1006);
  await pass(200);
  expect(text(".arp-outgoing .arp-caption")).toBe("Waiting for the connection");
  expect(chat.querySelector("arp-late")).toBeNull();
});

test("without a connection, the chat does not announce that the agent still works", async () => {
  FakeSocket.last.notify(
    message("input", 1, { input_type: "text", data: { text: "Hi" }, id: "i" }),
    message("turn", 2, { status: "running" }),
  );
  await pass(200);
  expect(text(".arp-status")).toBe("Answering");
  await pass(8000);
  expect(text(".arp-status")).toBe("Still working");
  FakeSocket.isReachable = false;
  FakeSocket.last.close(1006);
  await pass(200);
  expect([text(".arp-urgent"), chat.classList.contains("arp-blind")]).toEqual(["Reconnecting", true]);
  (chat.querySelector(".arp-status") as HTMLElement).textContent = "";
  await pass(30_000);
  expect(text(".arp-status")).toBe("");
  await vi.dynamicImportSettled(); // an attempt waits for the code of the event stream, which takes real time to load
  await pass(0);
  expect(chat.activeClient?.store.status.get().phase).toBe("waiting");
  FakeSocket.isReachable = true;
  chat.activeClient?.connect();
  await pass(0);
  FakeSocket.last.welcome({ resume: "replay" });
  await pass(8000);
  expect([text(".arp-status"), chat.classList.contains("arp-blind")]).toEqual(["Still working", false]);
});

test("while it reconnects, the chat says that there is no connection, not only that it connects", async () => {
  FakeSocket.last.notify({ ...HELLO, capabilities: { ...HELLO.capabilities, features: ["input", "resume", "ping"] } });
  FakeSocket.last.close(1006);
  await pass(200);
  expect(text("arp-banner")).toMatch(/^Reconnecting in 1 s/); // 0.9 of the first waiting time
  part.mockReturnValue(0);
  chat.activeClient?.connect(); // the connection opens, but the server does not answer
  await pass(200);
  expect(chat.activeClient?.store.status.get().phase).toBe("connecting");
  expect(text("arp-banner")).toBe("No connection. Trying to reconnect. Your text is safe.");
});
