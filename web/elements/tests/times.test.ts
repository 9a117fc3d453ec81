/** Lines between days, and times of messages. */

import type { TurnState } from "@agent-rendering/core";
import { translator } from "@agent-rendering/core/strings";
import { render } from "lit";
import { expect, test, vi } from "vitest";
import { turnsOf } from "../../core/src/chat/history_turns.js";
import { dayLines, timeOf } from "../src/chat/timeline/times.js";
import { words } from "./context.js";

const NOW = new Date(2026, 10, 21, 15, 0);

/** Return a turn that began at a local time. */
function turn(id: string, ...at: [number, number, number, number]): TurnState {
  const [sent] = turnsOf([{ role: "user", content: "hi", turn_id: id, timestamp: new Date(...at).toISOString() }]);
  return sent as TurnState;
}

function drawn(template: unknown): HTMLElement {
  const place = document.createElement("div");
  render(template, place);
  return place;
}

test("W38 a line is above the first turn of each day, and not above the others", async () => {
  const turns = [
    turn("a", 2024, 1, 29, 23),
    turn("b", 2026, 10, 20, 0),
    turn("c", 2026, 10, 20, 23),
    turn("d", 2026, 10, 21, 0),
    turn("e", 2026, 10, 21, 9),
  ];
  const lines = dayLines([...turns, undefined], translator("en-GB"), NOW);
  const places = [...lines].map(([id, line]) => [id, drawn(line)] as const);
  await vi.waitFor(() => expect(places.map(([, place]) => words(place))).not.toContain(""));
  const received = places.map(([id, place]) => [
    id,
    words(place),
    place.querySelector("time")?.getAttribute("datetime"),
  ]);
  expect(received).toEqual([
    ["a", expect.stringMatching(/^Thursday,? 29 February 2024$/), "2024-02-29"],
    ["b", "Yesterday", "2026-11-20"],
    ["d", "Today", "2026-11-21"],
  ]);
});

test("W38 a conversation of today has no line; turns without a time are ignored", () => {
  const untimed = { ...turn("b", 2026, 10, 21, 10), inputs: [] };
  expect([
    ...dayLines([turn("a", 2026, 10, 21, 9), untimed, turn("c", 2026, 10, 21, 11)], translator("en"), NOW),
  ]).toEqual([]);
});

test("W38 a time is in the reader's language, and an unknown time is not shown", async () => {
  const at = new Date(2026, 10, 21, 9, 5).toISOString();
  const t = translator("de");
  const time = drawn(timeOf(at, t)).querySelector("time");
  expect(time?.textContent).toBe("\u00a0"); // the first text in a language is written a moment later
  await vi.waitFor(() => expect(time?.textContent).toBe("09:05"));
  expect([time?.getAttribute("datetime"), time?.textContent, time?.title]).toEqual([
    at,
    "09:05",
    "Samstag, 21. November 2026 um 09:05",
  ]);
  expect(words(drawn(timeOf(at, t)))).toBe("09:05"); // later texts are written at once
  for (const none of [null, undefined, "", "yesterday"])
    expect(drawn(timeOf(none, translator("de"))).textContent).toBe("");
});

test("W38 a time that changes before it is written is written with its new value", async () => {
  const place = document.createElement("div");
  const t = translator("fr");
  for (const minute of [5, 6]) render(timeOf(new Date(2026, 10, 21, 9, minute).toISOString(), t), place);
  await vi.waitFor(() => expect(words(place)).toBe("09:06"));
  render(timeOf(new Date(2026, 10, 21, 9, 7).toISOString(), translator("de")), place);
  await vi.waitFor(() => expect(place.querySelector("time")?.title).toBe("Samstag, 21. November 2026 um 09:07"));
});

test("W34 older turns keep the order of texts, components and tools", () => {
  const [turn] = turnsOf([
    { role: "user", content: "go", turn_id: "t1", timestamp: "2026-11-21T09:00:00Z" },
    {
      role: "assistant",
      content: "A\u{1F989}B",
      turn_id: "t1",
      timestamp: "2026-11-21T09:00:05Z",
      status: "completed",
      ui_events: [{ tool: "", component: "table", props: { rows: [] }, id: "c" }],
      parts: [{ id: "t1/1", characters: 2 }, { id: "c" }, { id: "t1/2", characters: 1 }],
      tools: [
        { tool: "first", args: "{}", ok: true, behind: {} },
        { tool: "second", args: "{}", ok: true, behind: { component: "c" } },
        { tool: "third", args: "{}", ok: true, behind: { component: "t1/1", characters: 1 } },
      ],
    },
  ]);
  expect(turn?.output.map(({ id, type, props }) => [id, type, props.content])).toEqual([
    ["t1/1", "text", "A\u{1F989}"],
    ["t1-old-0", "table", undefined],
    ["t1/2", "text", "B"],
  ]);
  expect(turn?.marks.slice(1)).toEqual([
    { kind: "tool", number: 0, component: null, characters: null },
    { kind: "tool", number: 1, component: "t1-old-0", characters: null },
    { kind: "tool", number: 2, component: "t1/1", characters: 1 },
  ]);
});

test("W34 without an order from the server, the text comes first", () => {
  const [turn] = turnsOf([
    {
      role: "assistant",
      content: "A",
      turn_id: "t1",
      timestamp: "",
      ui_events: [{ tool: "", component: "table", props: {} }],
    },
  ]);
  expect(turn?.output.map(({ type }) => type)).toEqual(["text", "table"]);
});
