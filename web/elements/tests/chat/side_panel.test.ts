/** Titles and widths of the side panel. */

import { expect, test, vi } from "vitest";

import { titleOf } from "../../src/chat/surfaces/side_panel.js";
import {
  ADJACENT_PX,
  Border,
  bounded,
  DEFAULT_PX,
  LEAST_PX,
  mostOf,
  readWidth,
} from "../../src/chat/surfaces/side_width.js";

test.each([
  ["build_status", "Build status"],
  ["status", "Status"],
  ["open-orders", "Open orders"],
  ["Bauplan 3", "Bauplan 3"],
  ["camelCase", "camelCase"],
  ["notes.md", "notes.md"],
  ["side", "Side panel"],
  ["sidebar", "Side panel"],
  ["side-panel", "Side panel"],
  ["panel", "Side panel"],
  ["a\u202eb", "a⟨U+202E⟩b"],
])("the surface %j has the title %j", (name, title) => {
  expect(titleOf(name, "Side panel")).toBe(title);
});

test("the panel leaves the conversation its smallest width, and is never narrower than its own", () => {
  expect(bounded(10, 1440)).toBe(LEAST_PX);
  expect(bounded(5000, 1440)).toBe(mostOf(1440));
  expect(mostOf(1440)).toBe(960);
  expect(mostOf(1000)).toBe(600);
  expect(mostOf(ADJACENT_PX)).toBe(LEAST_PX);
  expect(mostOf(100)).toBe(LEAST_PX);
});

test.each([
  [null, DEFAULT_PX],
  ["300", 300],
  ["wide", DEFAULT_PX],
])("the stored value %j gives the width %d", (kept, width) => {
  expect(readWidth({ getItem: () => kept, setItem() {}, removeItem() {} })).toBe(width);
});

test("a forbidden storage gives the default width", () => {
  const forbidden = () => {
    throw new DOMException("no", "SecurityError");
  };
  expect(readWidth({ getItem: forbidden, setItem: forbidden, removeItem: forbidden })).toBe(DEFAULT_PX);
});

test("keys with a modifier, and other keys, do not move the border", () => {
  const move = vi.fn();
  const border = new Border(document.body, move);
  for (const event of [
    new KeyboardEvent("keydown", { key: "ArrowLeft", altKey: true }),
    new KeyboardEvent("keydown", { key: "ArrowUp" }),
  ]) {
    border.key(event, 384, 1440);
  }
  expect(move).not.toHaveBeenCalled();
  border.key(new KeyboardEvent("keydown", { key: "ArrowLeft" }), 384, 1440);
  expect(move).toHaveBeenCalledExactlyOnceWith(400, true);
});
