/** Names of authors, after an agent has handed over to others. */

import type { Component, TurnState } from "@agent-rendering/core";
import { expect, test } from "vitest";

import { initialsOf } from "../../src/chat/message/author.js";
import { ArpMessage } from "../../src/chat/message/message.js";
import { ArpOwn } from "../../src/components/own.js";
import { createComponents, createContext } from "../../src/base/context.js";

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

async function shown(turn: TurnState, more: Partial<ArpMessage> = {}): Promise<ArpMessage> {
  const message = Object.assign(new ArpMessage(), { turn, ...more });
  document.body.append(message);
  await message.updateComplete;
  return message;
}

test("the name is above the messages of an author, with a badge that screen readers skip", async () => {
  const message = await shown(turnOf(HANDED), { avatar: "🤖" });
  const articles = [...message.querySelectorAll("article")];
  expect(articles.map((one) => one.getAttribute("aria-label"))).toEqual([
    "Agent said",
    "Research Desk said",
    "Écrivain said",
  ]);
  expect([...message.querySelectorAll(".arp-author > [dir]")].map((one) => one.textContent)).toEqual([
    "Research Desk",
    "Écrivain",
  ]);
  expect(
    [...message.querySelectorAll(".arp-initials")].map((one) => [one.textContent, one.getAttribute("aria-hidden")]),
  ).toEqual([
    ["RD", "true"],
    ["É", "true"],
  ]);
  expect(message.querySelectorAll(".arp-avatar").length).toBe(1);
});

test("an author who is about to speak is named; an author who said nothing until the end is not", async () => {
  const begun = [said(1, "I ask."), author("a", "Desk")];
  const message = await shown(turnOf(begun, false));
  expect(message.querySelectorAll(".arp-author, .arp-typing").length).toBe(2);
  message.turn = turnOf(begun);
  await message.updateComplete;
  expect(message.querySelectorAll(".arp-author, .arp-typing").length).toBe(0);
});

test("an application draws authors itself if it has a component for them", async () => {
  const registry = createComponents({
    "x-arp-author": ({ props }) => Object.assign(document.createElement("b"), { textContent: String(props.name) }),
  });
  const message = await shown(turnOf(HANDED), { context: createContext({ registry }) });
  expect(message.querySelectorAll("article").length).toBe(1);
  await Promise.all([...message.querySelectorAll<ArpOwn>("arp-own")].map((own) => own.updateComplete));
  expect([...message.querySelectorAll("arp-own b")].map((one) => one.textContent)).toEqual([
    "Research Desk",
    "Research Desk",
    "Écrivain",
  ]);
});

test("an author whose name is not a text is drawn like a component of an unknown type", async () => {
  const message = await shown(turnOf([author("a", 5), said(1, "Hi.")]));
  expect(message.querySelector(".arp-author")).toBeNull();
  expect(message.querySelectorAll("article").length).toBe(1);
});

test.each([
  ["Research Desk", "RD"],
  ["ann of the desk", "AD"],
  ["研究", "研"],
  ["_*_", ""],
])("the badge of %s is %s", (name, badge) => expect(initialsOf(name)).toBe(badge));
