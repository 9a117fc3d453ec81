/** Which key presses count as shortcuts. */

import { expect, test, vi } from "vitest";
import { actOnKey, CHAT_KEYS, isPressed, keyName } from "../src/chat/keys.js";

/** Presses a key in an element, and returns whether it counts. */
function pressed(shortcut: string | null, init: KeyboardEventInit, inside = "<p></p>", taken = false): boolean {
  const place = document.createElement("div");
  place.innerHTML = inside;
  document.body.append(place);
  let counts = false;
  place.addEventListener("keydown", (event) => {
    if (taken) event.preventDefault();
    counts = isPressed(shortcut, event as unknown as KeyboardEvent);
  });
  (place.querySelector("[data-here]") ?? place.firstElementChild ?? place).dispatchEvent(
    new KeyboardEvent("keydown", { bubbles: true, cancelable: true, ...init }),
  );
  place.remove();
  return counts;
}

test("W89 a shortcut is its key with exactly its modifiers", () => {
  expect(pressed("Escape", { key: "Escape" })).toBe(true);
  expect(pressed("Escape", { key: "Escape", shiftKey: true })).toBe(false);
  expect(pressed("Alt+ArrowUp", { key: "ArrowUp", altKey: true })).toBe(true);
  expect(pressed("Alt+ArrowUp", { key: "ArrowUp" })).toBe(false);
  expect(pressed("Control+k", { key: "K", ctrlKey: true })).toBe(true);
  expect(pressed("?", { key: "?", shiftKey: true })).toBe(true);
  expect(pressed("Control++", { key: "+", ctrlKey: true })).toBe(true);
  expect(pressed(null, { key: "Escape" })).toBe(false);
});

test("W89 keys that were taken, compose a word, or write in a field are none", () => {
  expect(pressed("Escape", { key: "Escape" }, "<p></p>", true)).toBe(false);
  expect(pressed("Escape", { key: "Escape", isComposing: true })).toBe(false);
  for (const field of ["<input>", "<textarea></textarea>", "<select></select>", '<p contenteditable="true"></p>']) {
    expect(pressed("Escape", { key: "Escape" }, field), field).toBe(false);
    expect(pressed("Alt+ArrowDown", { key: "ArrowDown", altKey: true }, field), field).toBe(false);
  }
});

test("W89 in the message box signs write, other keys count", () => {
  const inside = "<arp-composer><textarea data-here></textarea></arp-composer>";
  expect(pressed("Escape", { key: "Escape" }, inside)).toBe(true);
  expect(pressed("Control+.", { key: ".", ctrlKey: true }, inside)).toBe(true);
  expect(pressed("x", { key: "x" }, inside)).toBe(false);
});

test("a key is named as people read it", () => {
  expect([keyName("Alt+ArrowUp"), keyName("Control+End"), keyName("Escape"), keyName(null)]).toEqual([
    "Alt Up",
    "Ctrl End",
    "Esc",
    "",
  ]);
});

test("W89 the browser acts on a key too unless the chat has acted on it", () => {
  const actions = { stop: vi.fn(() => false), previous: vi.fn(() => true), next: vi.fn(), newest: vi.fn(() => false) };
  const press = (init: KeyboardEventInit) => {
    const event = new KeyboardEvent("keydown", { cancelable: true, ...init });
    actOnKey(event, { ...CHAT_KEYS, next: null }, actions);
    return event.defaultPrevented;
  };
  expect(press({ key: "Escape" })).toBe(false); // nothing runs that it could stop
  expect(press({ key: "ArrowUp", altKey: true })).toBe(true);
  expect(press({ key: "ArrowDown", altKey: true })).toBe(false);
  expect([actions.stop, actions.previous, actions.next].map(({ mock }) => mock.calls.length)).toEqual([1, 1, 0]);
});
