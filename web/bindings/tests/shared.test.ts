/** Rules that both framework packages follow. */

import { VERSIONS, type Component, type Status } from "@agent-rendering/core";
import { DRAWN } from "@agent-rendering/core/chat";
import type { ArpContext } from "@agent-rendering/elements/components";
import { readdirSync, readFileSync } from "node:fs";
import { expect, test, vi } from "vitest";
import { BUILT_IN, builtInName } from "../src/built_in.js";
import { chatActions, chatProperties, sendTyped } from "../src/chat.js";
import { offering } from "../src/client_options.js";
import { shownComponent, turnOfMessage } from "../src/message.js";
import { answerText, asText, ownOf } from "../src/own_components.js";
import { capabilitiesOf, IDLE } from "../src/status.js";

const component = (type: string, props = {}): Component => ({ id: "c", type, props });

test("a text answers choices and text-input, and is a message for every other type", () => {
  const answer = vi.fn();
  const sendText = vi.fn();
  const context = { answer, client: { sendText } } as unknown as ArpContext;
  for (const type of ["choices", "text-input", "form"]) answerText(component(type), context, "Rain");
  expect(answer.mock.calls.map(([, value]) => value)).toEqual([["Rain"], "Rain"]);
  expect(sendText.mock.calls).toEqual([["Rain"]]);
});

test("an answer is passed as a text: several values with commas, objects as JSON", () => {
  const texts: string[] = [];
  const answer = asText((text) => texts.push(text));
  for (const value of ["a", ["a", "b"], { a: 1 }, true]) answer(null, value);
  expect(texts).toEqual(["a", "a, b", '{"a":1}', "true"]);
});

test("a built-in component counts as custom only under another type", () => {
  const table = { [BUILT_IN]: "table" };
  expect(Object.keys(ownOf({ table, chart: table, "x-demo-a": {} }))).toEqual(["chart", "x-demo-a"]);
});

test("a client offers the types of the elements and the custom ones; the option components is used without custom ones", () => {
  const given = { url: "", components: { text: 1 } };
  expect(offering({ url: "" }, {})).toEqual({ url: "", components: DRAWN });
  expect(offering(given, {})).toBe(given);
  expect(offering(given, { table: {}, "x-demo-a": {} }).components).toEqual({ ...DRAWN, "x-demo-a": 1 });
});

test("an empty message is not sent; files without a text are", () => {
  const client = { sendText: vi.fn(() => "id") } as never;
  const file = new File(["a"], "a.txt");
  expect([sendTyped(client, " "), sendTyped(client, "", file), sendTyped(null, "Hi")]).toEqual([null, "id", null]);
});

test("a new chat that a click begins does not name an agent", () => {
  const setSessionId = vi.fn();
  const { startNewChat } = chatActions(() => ({ setSessionId }) as never);
  startNewChat({ type: "click" });
  startNewChat("sales");
  expect(setSessionId.mock.calls).toEqual([
    [null, {}],
    [null, { workflow: "sales" }],
  ]);
});

test("the theme auto of the draft is system", () => {
  expect(chatProperties({ title: "Sales", theme: "auto" })).toMatchObject({ heading: "Sales", theme: "system" });
});

test("capabilities have every field, and stay the same object", () => {
  const status = { ...IDLE, capabilities: { components: ["text"] } } as unknown as Status;
  expect(capabilitiesOf(status)).toEqual({ components: ["text"], features: [] });
  expect(capabilitiesOf(status)).toBe(capabilitiesOf(status));
  expect(capabilitiesOf(IDLE)).toBe(null);
});

test("a restored question is expired; a component in the draft's form has an id", () => {
  const question = component("confirm", { title: "?" });
  expect(shownComponent(question, undefined, true, "")?.props).toEqual({ title: "?", state: "expired" });
  expect(shownComponent(question, undefined, false, "")).toBe(question);
  expect(shownComponent(undefined, { component: "text", props: {} }, true, "i")).toEqual({
    id: "i",
    type: "text",
    props: {},
  });
  expect(shownComponent(undefined, undefined, true, "i")).toBe(null);
});

test("a message becomes a turn with its id", () => {
  expect(turnOfMessage({ role: "user", content: "Hi", file: undefined }, "m").id).toBe("m");
});

test("each component of the catalog has a name for developer tools", () => {
  const names = Object.keys(VERSIONS).map(builtInName);
  expect(names).toContain("ArpStatusCard");
  expect(names.filter((name) => !/^Arp(?:[A-Z][a-z]+)+$/.test(name))).toEqual([]);
});

test("nothing here imports a framework", () => {
  const source = new URL("../src/", import.meta.url);
  const texts = readdirSync(source).map((name) => readFileSync(new URL(name, source), "utf8"));
  expect(texts.filter((text) => /from "(?:react|vue)/.test(text))).toEqual([]);
});
