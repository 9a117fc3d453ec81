/** Popups and overlays in a chat with a fake server. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FakeSocket } from "../../../core/tests/fakes.js";
import type { ArpChat } from "../../src/chat/chat.js";
import { anchorOf, inside } from "../../src/chat/surfaces/popup_place.js";
import "../../src/chat/surfaces/popups.js";
import { loadMessages } from "../../src/chat/timeline/timeline.js";
import "../../src/components/index.js";
import { entered, left, report, soon } from "./stage.js";

let chat: ArpChat;
let seq = 100;

beforeEach(async () => {
  await loadMessages();
  chat = await entered();
  FakeSocket.last.notify({
    type: "hello",
    v: 1,
    capabilities: { components: [], features: ["resume", "input", "overlays"] },
  });
});

afterEach(() => left(chat));

const text = (id: string, content: string) => ({ id, type: "text", props: { content } });

/** Open a popup with components, as the agent side does. */
async function opened(surface: string, payload: object, ...components: object[]): Promise<void> {
  const fields = { v: 1, session_id: "s1", turn_id: "t1", surface };
  await report(
    chat,
    { type: "surface", ...fields, payload },
    { type: "render", ...fields, components },
    { type: "commit", ...fields, seq: (seq += 1), final: false },
  );
  await soon();
}

const closed = (surface: string, reason: string) =>
  report(chat, { type: "surface", v: 1, session_id: "s1", surface, payload: {}, closed: reason, seq: (seq += 1) });

const popup = () => chat.querySelector<HTMLElement>(".arp-popup");

test("a popup is a dialog with its title, takes the focus, and returns it when Escape closes it", async () => {
  const button = document.createElement("button");
  document.body.append(button);
  button.focus();
  await opened("t1-popup-1", { role: "popup", title: "Order 2", component: "orders", row: 1 }, text("a", "Two"));
  const card = popup() as HTMLElement;
  expect([card.getAttribute("role"), card.dataset.kind]).toEqual(["dialog", "popup"]);
  expect(card.querySelector("h2")?.textContent).toBe("Order 2");
  expect(card.getAttribute("aria-labelledby")).toBe(card.querySelector("h2")?.id);
  expect(card.textContent).toContain("Two");
  expect(document.activeElement).toBe(card);
  card.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true, cancelable: true }));
  await soon();
  expect(popup()).toBeNull();
  expect(document.activeElement).toBe(button);
  expect(FakeSocket.last.sent).toContainEqual(expect.objectContaining({ input_type: "focus", surface: "t1-popup-1" }));
  expect(FakeSocket.last.sent).toContainEqual(
    expect.objectContaining({ data: { action: "arp.close" }, surface: "t1-popup-1" }),
  );
  button.remove();
});

test("a popup does not take the focus from a field with text", async () => {
  const box = document.createElement("textarea");
  document.body.append(box);
  box.value = "half a mess";
  box.focus();
  await opened("t1-popup-1", { role: "popup" }, text("a", "Two"));
  expect(document.activeElement).toBe(box);
  box.remove();
});

test("an overlay is announced, does not take the focus, and disappears when the agent side closes it", async () => {
  const announced = vi.spyOn(chat.context, "announce");
  chat.focus();
  const { activeElement } = document;
  await opened("t1-overlay-1", { role: "overlay", anchor: "top-right", timeout_ms: 500 }, text("a", "Sent"));
  await soon();
  expect([popup()?.dataset.kind, popup()?.dataset.anchor]).toEqual(["overlay", "top-right"]);
  expect(document.activeElement).toBe(activeElement);
  expect(announced).toHaveBeenCalledWith(expect.stringContaining("Sent"));
  await closed("t1-overlay-1", "timeout");
  expect(popup()).toBeNull();
});

test("a click elsewhere closes a popup, unless it has an open question", async () => {
  const confirm = { id: "q", type: "confirm", props: { title: "Sure?", state: "open" } };
  await opened("t1-popup-1", { role: "popup" }, confirm);
  document.body.dispatchEvent(new Event("pointerdown", { bubbles: true, composed: true }));
  await soon();
  expect(popup()).not.toBeNull();
  await closed("t1-popup-1", "agent");
  await opened("t1-popup-2", { role: "popup" }, text("a", "x"));
  popup()?.dispatchEvent(new Event("pointerdown", { bubbles: true, composed: true }));
  await soon();
  expect(popup()).not.toBeNull();
  document.body.dispatchEvent(new Event("pointerdown", { bubbles: true, composed: true }));
  await soon();
  expect(popup()).toBeNull();
});

test("an answer in a popup names the popup", async () => {
  const choices = { id: "q", type: "choices", props: { options: ["one", "two"], state: "open" } };
  await opened("t1-popup-1", { role: "popup" }, choices);
  const element = popup()?.querySelector("[data-type=choices]") as HTMLElement & {
    context: { answer(component: object, value: string): void };
  };
  element.context.answer(choices, "one");
  expect(FakeSocket.last.sent.at(-1)).toMatchObject({
    surface: "t1-popup-1",
    source_component: "q",
    data: { selected: ["one"] },
  });
});

test("the group of a popup in the conversation is not drawn", async () => {
  const fields = { v: 1, session_id: "s1", turn_id: "t1", seq: (seq += 1) };
  const group = { id: "t1-popup-1", type: "group", props: { children: [] } };
  await report(chat, { type: "render", ...fields, components: [group] }, { type: "commit", ...fields, final: true });
  await soon();
  const drawn = chat.querySelector<HTMLElement>("arp-group");
  expect(drawn === null || drawn.hidden).toBe(true);
});

test("a popup stays inside the window", () => {
  const box = { width: 200, height: 100 } as DOMRect;
  expect(inside(900, 10, box, 1000, 500)).toEqual([792, 10]);
  expect(inside(-50, 480, box, 1000, 500)).toEqual([8, 392]);
  expect(inside(50, 50, box, 100, 80)).toEqual([8, 8]);
});

test("the anchor of a popup is the row, or else the component, or else nothing", () => {
  const around = document.createElement("div");
  around.innerHTML = "<p data-type=table></p>";
  const table = around.firstElementChild as HTMLElement & {
    component?: object;
    rowOf?(row: number): HTMLElement | null;
  };
  table.component = { id: "orders" };
  const row = document.createElement("tr");
  table.rowOf = (number) => (number === 2 ? row : null);
  expect(anchorOf(around, { component: "orders", row: 2 })).toBe(row);
  expect(anchorOf(around, { component: "orders", row: 3 })).toBe(table);
  expect(anchorOf(around, { component: "orders" })).toBe(table);
  expect(anchorOf(around, { component: "nothing" })).toBeNull();
  expect(anchorOf(around, {})).toBeNull();
});
