/** Keyboard shortcuts of a chat. */

import { expect, test, vi } from "vitest";
import { actOnKey, CHAT_KEYS, isPressed, keyName } from "../src/chat/keys.js";

/** Press a key in an element. Return whether it counts as the shortcut. */
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

test("W89 a shortcut needs its key with exactly its modifiers", () => {
  expect(pressed("Escape", { key: "Escape" })).toBe(true);
  expect(pressed("Escape", { key: "Escape", shiftKey: true })).toBe(false);
  expect(pressed("Alt+ArrowUp", { key: "ArrowUp", altKey: true })).toBe(true);
  expect(pressed("Alt+ArrowUp", { key: "ArrowUp" })).toBe(false);
  expect(pressed("Control+k", { key: "K", ctrlKey: true })).toBe(true);
  expect(pressed("?", { key: "?", shiftKey: true })).toBe(true);
  expect(pressed("Control++", { key: "+", ctrlKey: true })).toBe(true);
  expect(pressed(null, { key: "Escape" })).toBe(false);
});

test("W89 keys that were handled, that compose a word or that are pressed in a field are no shortcuts", () => {
  expect(pressed("Escape", { key: "Escape" }, "<p></p>", true)).toBe(false);
  expect(pressed("Escape", { key: "Escape", isComposing: true })).toBe(false);
  for (const field of ["<input>", "<textarea></textarea>", "<select></select>", '<p contenteditable="true"></p>']) {
    expect(pressed("Escape", { key: "Escape" }, field), field).toBe(false);
    expect(pressed("Alt+ArrowDown", { key: "ArrowDown", altKey: true }, field), field).toBe(false);
  }
});

test("W89 in the message box, keys that write a character are no shortcuts, other keys are", () => {
  const inside = "<arp-composer><textarea data-here></textarea></arp-composer>";
  expect(pressed("Escape", { key: "Escape" }, inside)).toBe(true);
  expect(pressed("Control+.", { key: ".", ctrlKey: true }, inside)).toBe(true);
  expect(pressed("x", { key: "x" }, inside)).toBe(false);
});

test("a shortcut has a name for readers", () => {
  expect([keyName("Alt+ArrowUp"), keyName("Control+End"), keyName("Escape"), keyName(null)]).toEqual([
    "Alt Up",
    "Ctrl End",
    "Esc",
    "",
  ]);
});

test("W89 the browser handles a key as well, unless the chat has handled it", () => {
  const actions = { stop: vi.fn(() => false), previous: vi.fn(() => true), next: vi.fn(), newest: vi.fn(() => false) };
  const press = (init: KeyboardEventInit) => {
    const event = new KeyboardEvent("keydown", { cancelable: true, ...init });
    actOnKey(event, { ...CHAT_KEYS, next: null }, actions);
    return event.defaultPrevented;
  };
  expect(press({ key: "Escape" })).toBe(false); // no turn runs that it could stop
  expect(press({ key: "ArrowUp", altKey: true })).toBe(true);
  expect(press({ key: "ArrowDown", altKey: true })).toBe(false);
  expect([actions.stop, actions.previous, actions.next].map(({ mock }) => mock.calls.length)).toEqual([1, 1, 0]);
});
