/** The layout of a turn. */

import { expect, test } from "vitest";
import type { Component, TurnState } from "../src/index.js";
import { childrenOf, isGrown, plainTextOf, sectionsOf } from "../src/timeline.js";

const said = (part: number, content: string): Component => ({
  id: `t1/${part}`,
  type: "text",
  props: { content, format: "markdown" },
});
const author = (id: string, name: unknown): Component => ({
  id,
  type: "x-arp-author",
  props: { name } as Component["props"],
  fallback: { id: "", type: "text", props: { content: `**${String(name)}**` } },
});

function turnOf(output: readonly Component[], final = true): TurnState {
  return {
    id: "t1",
    status: final ? "completed" : "running",
    position: null,
    inputs: [],
    output,
    tools: [],
    thinking: "",
    errors: [],
    marks: [],
    permissions: [],
    usage: null,
    final,
  };
}

const HANDED = [
  said(1, "I ask."),
  author("a", "Research Desk"),
  said(2, "It is 42."),
  author("b", "Research Desk"),
  said(3, "Sure."),
  author("c", "Écrivain"),
  said(4, "Fini."),
];

test("each author has a section, and further text of the same author continues it", () => {
  const sections = sectionsOf(turnOf(HANDED)).map(
    (section) =>
      section.kind === "answer" && [
        section.author,
        section.blocks.map((block) => block.kind === "prose" && block.text),
      ],
  );
  expect(sections).toEqual([
    [null, ["I ask."]],
    ["Research Desk", ["It is 42.", "Sure."]],
    ["Écrivain", ["Fini."]],
  ]);
});

test("a turn has grown if only its last text part is longer", () => {
  const before = turnOf([said(1, "I ask."), said(2, "It")], false);
  const { output } = before;
  const grown = { ...before, output: [output[0] as Component, said(2, "It is")] };
  expect(isGrown(before, grown)).toBe(true);
  expect(isGrown(undefined, grown)).toBe(false);
  expect(isGrown(before, { ...grown, status: "waiting" })).toBe(false);
  expect(isGrown(before, { ...before, output: [said(1, "I asked."), output[1] as Component] })).toBe(false);
  expect(isGrown(before, { ...before, output: [...output, said(3, "More")] })).toBe(false);
});

test("a running turn has a section for coming output, a final turn has no empty section", () => {
  expect(sectionsOf(turnOf([author("a", "Desk")], false)).map(({ key }) => key)).toEqual(["answer:0"]);
  expect(sectionsOf(turnOf([author("a", "Desk")]))).toEqual([]);
});

test("the plain text of a turn is the text of its text parts", () => {
  expect(plainTextOf(turnOf(HANDED))).toBe("I ask.\n\nIt is 42.\n\nSure.\n\nFini.");
});

test("children are components in lists, tabs and columns; other values are ignored", () => {
  const [a, b, c] = [said(1, "a"), said(2, "b"), said(3, "c")];
  const props = { children: [a, null, 1], tabs: [{ component: b }, null], left: c, right: "x" };
  expect(childrenOf({ id: "p", type: "x", props: props as unknown as Component["props"] })).toEqual([a, b, c]);
});
