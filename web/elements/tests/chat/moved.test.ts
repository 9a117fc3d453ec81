/** W11: a chat that was moved within its document, as by a keyed list, shows later changes. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FakeSocket, message } from "../../../core/tests/fakes.js";
import type { ArpChat } from "../../src/chat/chat.js";
import "../../src/chat/permissions/permissions.js";
import "../../src/chat/surfaces/popups.js";
import "../../src/chat/surfaces/side_panel.js";
import { loadMessages } from "../../src/chat/timeline/timeline.js";
import "../../src/components/index.js";
import { entered, left, report, soon } from "./stage.js";

let chat: ArpChat;
let seq: number;

beforeEach(async () => {
  await loadMessages();
  seq = 0;
  chat = await entered();
  FakeSocket.last.notify({
    type: "hello",
    v: 1,
    capabilities: { components: [], features: ["resume", "input", "overlays", "multi-surface"] },
  });
  await report(chat, next("input", { input_type: "text", data: { text: "Hi" }, id: "i" }));
});

afterEach(() => left(chat));

const next = (type: string, fields: object = {}) => message(type, (seq += 1), fields);

async function moved(): Promise<void> {
  const section = document.createElement("section");
  document.body.append(section);
  section.append(chat);
  await soon();
  expect(FakeSocket.made.length).toBe(1);
}

/** Let a tool ask for permission. */
const asks = (component: string) =>
  report(
    chat,
    next("turn", { status: "waiting", permission: { component, tool: "shell", input: '{"command":"ls"}' } }),
    message("render", null, { components: [{ id: component, type: "confirm", props: { message: "Run?" } }] }),
    next("commit", { final: false }),
  );

const opens = (surface: string, role: string, content: string) =>
  report(
    chat,
    message("surface", null, { surface, payload: { role, title: content } }),
    message("render", null, { surface, components: [{ id: `in-${surface}`, type: "text", props: { content } }] }),
    next("commit", { surface, final: false }),
  );

const cards = () =>
  [...chat.querySelectorAll<HTMLElement>("[data-permission]")].map(({ dataset }) => dataset.permission);
const popups = () => [...chat.querySelectorAll<HTMLElement>(".arp-popup")].map(({ dataset }) => dataset.surface);
const panel = () => chat.querySelector("arp-side-panel")?.textContent ?? "";

test("W11 a permission request after a move is shown, and earlier requests stay", async () => {
  await asks("q1");
  await vi.waitFor(() => expect(cards()).toEqual(["q1"]));
  await moved();
  expect(cards()).toEqual(["q1"]);
  await asks("q2");
  await vi.waitFor(() => expect(cards()).toEqual(["q1", "q2"]));
});

test("W11 a permission request that is answered elsewhere after a move disappears", async () => {
  await asks("q1");
  await vi.waitFor(() => expect(cards()).toEqual(["q1"]));
  await moved();
  const op = { op: "update", target: "q1", path: "props.state", value: "answered" };
  await report(chat, message("patch", null, { ops: [op] }), next("commit", { final: false }));
  await vi.waitFor(() => expect(cards()).toEqual([]));
});

test("W11 a popup that opens after a move is shown, and an earlier popup is shown again", async () => {
  const shown = vi.fn();
  HTMLElement.prototype.showPopover = function () {
    shown(this.dataset.surface);
  };
  await opens("t1-popup-1", "popup", "First");
  await vi.waitFor(() => expect(popups()).toEqual(["t1-popup-1"]));
  await moved();
  await vi.waitFor(() => expect(shown.mock.calls).toEqual([["t1-popup-1"], ["t1-popup-1"]]));
  await opens("t1-popup-2", "popup", "Second");
  await vi.waitFor(() => expect(popups()).toEqual(["t1-popup-1", "t1-popup-2"]));
  expect(shown).toHaveBeenLastCalledWith("t1-popup-2");
  delete (HTMLElement.prototype as { showPopover?: unknown }).showPopover;
});

test("W11 content that the side panel receives after a move is shown", async () => {
  await opens("notes", "toplevel", "One");
  await vi.waitFor(() => expect(panel()).not.toBe(""));
  await moved();
  await opens("orders", "toplevel", "Two");
  await (chat.querySelector("arp-side-panel") as HTMLElement & { open(): Promise<void> }).open();
  expect(panel()).toContain("Two");
});

test("W11 a question whose answer is refused after a move shows the error", async () => {
  const question = { id: "q", type: "confirm", props: { message: "Go on?" } };
  await report(chat, message("render", null, { components: [question] }), next("commit", { final: false }));
  await vi.waitFor(() => expect(chat.querySelector("arp-confirm button")).not.toBeNull());
  await moved();
  const id = chat.activeClient?.answer(question, true) as string;
  await report(chat, { type: "error", v: 1, payload: { error: "too late", code: 17, id } });
  await vi.waitFor(() => expect(chat.querySelector("arp-confirm [role=alert]")).not.toBeNull());
});
