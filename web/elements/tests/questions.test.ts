/** Questions: answered once, also while the agent writes, and the answer stays visible. */

import { ArpClient, type Component } from "@agent-rendering/core";
import { expect, test, vi } from "vitest";
import { FakeSocket, HELLO, SESSION } from "../../core/tests/fakes.js";
import { loadComponents } from "../src/index.js";
import { component, drawn, noting, ready, words } from "./context.js";

const ASKED = { title: "Delete it?", confirm_label: "Delete", deny_label: "Keep" };

function buttons(place: Element): HTMLButtonElement[] {
  return [...place.querySelectorAll<HTMLButtonElement>("button")];
}

test("W50 a confirmation is sent once, shows the choice, and is closed", async () => {
  const { context, answers, announced } = noting({ streaming: true });
  const requested = component("confirm", ASKED);
  const place = await drawn(requested, context);
  buttons(place)[1]?.click();
  buttons(place)[1]?.click();
  buttons(place)[0]?.click();
  await ready(place);
  expect(answers).toEqual([[requested.id, false]]);
  expect(announced).toEqual(["Answer sent"]);
  expect(buttons(place).map(({ disabled }) => disabled)).toEqual([true, true]);
  expect(words(place)).toContain("Answered: Keep");
});

test("W50 after a reload the question shows its answer and cannot be answered", async () => {
  const { context, answers } = noting();
  const place = await drawn(component("confirm", { ...ASKED, state: "answered", answer: true }), context);
  buttons(place)[0]?.click();
  expect(answers).toEqual([]);
  expect(words(place.querySelector("[data-taken]"))).toBe("Answered: Delete");
});

test.each([
  [true, "Delete"],
  ["confirm", "Delete"],
  [{ action: "confirm" }, "Delete"],
  [false, "Keep"],
  ["yes please", "Keep"],
  [{}, "Keep"],
  [1, "Keep"],
])("the answer %j is shown as %s: a doubtful answer does not confirm", async (answer, shown) => {
  const place = await drawn(component("confirm", { ...ASKED, state: "answered", answer }), noting().context);
  expect(words(place.querySelector("[data-taken]"))).toBe(`Answered: ${shown}`);
});

test.each([
  ["declined", "Declined"],
  ["expired", "Expired"],
  ["cancelled", "Cancelled"],
])("a question that is %s shows its state and is closed", async (state, shown) => {
  const place = await drawn(component("choices", { options: ["a"], state }), noting().context);
  expect(words(place.querySelector(".arp-standing"))).toBe(shown);
  expect(buttons(place)[0]?.disabled).toBe(true);
});

test.each(["form", "confirm", "choices", "text-input", "table"])(
  "a %s that can be declined is declined once, with its own button",
  async (type) => {
    await loadComponents();
    const props =
      {
        form: { fields: [{ name: "n" }] },
        confirm: ASKED,
        choices: { options: ["a"] },
        table: { headers: ["a"], rows: [[1]], selectable: "one" },
      }[type] ?? {};
    const without = await drawn(component(type, props), noting().context);
    expect(without.querySelector(".arp-decline")).toBeNull();
    const declined: string[] = [];
    const { context, answers, announced } = noting({ decline: ({ id }) => void declined.push(id) });
    const asked = component(type, { ...props, can_decline: true });
    const place = await drawn(asked, context);
    const button = place.querySelector<HTMLButtonElement>(".arp-decline");
    expect(words(button)).toBe("Decline");
    button?.click();
    button?.click();
    await ready(place);
    expect([declined, answers, announced]).toEqual([[asked.id], [], ["Answer sent"]]);
    expect(place.querySelector(".arp-decline")).toBeNull();
  },
);

test("in a recording a question is closed: a viewer cannot answer it", async () => {
  const client = new ArpClient({ url: "http://agent.example", storage: null, WebSocket: FakeSocket as never });
  client.connect();
  await Promise.resolve();
  FakeSocket.last.onopen?.();
  FakeSocket.last.notify({ ...HELLO, capabilities: { ...HELLO.capabilities, features: ["resume"] } }, SESSION);
  const place = await drawn(component("confirm", ASKED), noting({ client }).context);
  expect(buttons(place).map(({ disabled }) => disabled)).toEqual([true, true]);
  client.disconnect();
});

test("W50 without a connection the answer waits in the client, and the question shows it", async () => {
  const client = new ArpClient({ url: "http://127.0.0.1:1", storage: null });
  const { context } = noting({ client });
  const requested = component("confirm", ASKED);
  const place = await drawn(requested, { ...context, answer: (one, value) => client.answer(one, value) });
  buttons(place)[0]?.click();
  await ready(place);
  expect(client.store.outgoing.get().map(({ message, phase }) => [message.source_component, phase])).toEqual([
    [requested.id, "waiting"],
  ]);
  expect(words(place.querySelector(".arp-standing"))).toBe("Your answer will be sent when the connection is back.");
});

test("W50 a question whose answer is not acknowledged after a second shows that it is not delivered", async () => {
  const client = new ArpClient({ url: "http://agent.example", storage: null, WebSocket: FakeSocket as never });
  client.connect();
  await Promise.resolve();
  FakeSocket.last.welcome();
  const requested = component("confirm", ASKED);
  const { context } = noting({ client });
  const place = await drawn(requested, { ...context, answer: (one, value) => client.answer(one, value) });
  buttons(place)[0]?.click();
  await ready(place);
  const late = () => place.querySelector<HTMLElement>(".arp-standing arp-late");
  expect([words(place.querySelector(".arp-standing")), late()?.hidden]).toEqual([
    "Answer sent · Not delivered yet",
    true,
  ]);
  await vi.waitFor(() => expect(late()?.hidden).toBe(false), { timeout: 3000 });
  FakeSocket.last.notify({ type: "ack", v: 1, id: FakeSocket.last.of("input")[0]?.id });
  client.store.flush();
  await ready(place);
  expect(words(place.querySelector(".arp-standing"))).toBe("Answer sent");
  client.disconnect();
});

test("W50 a question whose answer was sent before a reload cannot be answered again", async () => {
  const client = new ArpClient({ url: "http://127.0.0.1:1", storage: null });
  const requested = component("choices", { options: ["a", "b"] });
  client.answer(requested, "a");
  const place = await drawn(requested, noting({ client }).context);
  expect(buttons(place).every(({ disabled }) => disabled)).toBe(true);
});

test("choices: a choice is sent with its value, a disabled choice is not", async () => {
  const { context, answers } = noting();
  const requested = component("choices", {
    options: ["sun", { label: "Rain", value: 7 }, { label: "Fog", disabled: true }],
  });
  const place = await drawn(requested, context);
  buttons(place)[2]?.click();
  buttons(place)[1]?.click();
  expect(answers).toEqual([[requested.id, [7]]]);
});

test("choices: several choices are sent in the order of the options", async () => {
  const { context, answers } = noting();
  const requested = component("choices", { options: ["a", "b", "c"], multi_select: true });
  const place = await drawn(requested, context);
  const boxes = [...place.querySelectorAll<HTMLInputElement>("input")];
  expect(buttons(place)[0]?.disabled).toBe(true);
  boxes[2]?.click();
  boxes[0]?.click();
  await ready(place);
  expect(words(place.querySelector("[role=status]"))).toBe("2 selected");
  buttons(place)[0]?.click();
  expect(answers).toEqual([[requested.id, ["a", "c"]]]);
});

test("W56 text input: a label, a count of characters left, Enter sends, a long text is not sent", async () => {
  const { context, answers } = noting();
  const requested = component("text-input", { label: "A name", max_length: 5 });
  const place = await drawn(requested, context);
  const input = place.querySelector("input") as HTMLInputElement;
  const write = async (text: string) => {
    input.value = text;
    input.dispatchEvent(new Event("input"));
    await ready(place);
  };
  expect(place.querySelector("label")?.getAttribute("for")).toBe(input.id);
  await write("héllo!");
  expect(words(place.querySelector(".arp-note"))).toBe("At most 5 characters.");
  input.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
  await write("🙂🙂🙂");
  expect(words(place.querySelector(".arp-note"))).toBe("2 characters left");
  input.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", isComposing: true }));
  expect(answers).toEqual([]);
  input.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
  expect(answers).toEqual([[requested.id, "🙂🙂🙂"]]);
  await ready(place);
  expect(words(place.querySelector(".arp-answer"))).toBe("🙂🙂🙂");
});

test("W49 an answered form is a summary: labels of options, no passwords", async () => {
  await loadComponents("form");
  const fields = [
    { name: "size", field_type: "select", options: [{ label: "Large", value: 2 }] },
    { name: "key", label: "Key", field_type: "password" },
    { name: "ok", field_type: "checkbox" },
  ];
  const place = await drawn(
    component("form", { fields, state: "answered", answer: { size: 2, key: "secret", ok: false } }),
    noting().context,
  );
  expect(place.querySelector("input, select, button")).toBeNull();
  expect([...place.querySelectorAll("dl > div")].map(words)).toEqual(["sizeLarge", "Key••••••", "okNo"]);
});

test("W55 progress: an ordered list with a word for each state, and a bar for the total", async () => {
  const place = await drawn(
    component("progress", {
      title: "Import",
      steps: [
        { name: "Read", status: "done" },
        { name: "Check", status: "active" },
        { name: "Write", status: "sleeping" },
      ],
    }),
    noting().context,
  );
  expect([...place.querySelectorAll("ol > li")].map(words)).toEqual([
    "Read, Done",
    "Check, In progress",
    "Write, Pending",
  ]);
  expect(place.querySelector("progress")?.getAttribute("aria-label")).toBe("Import: 1 of 3 done");
  expect(place.querySelector("li[aria-current=step]")?.textContent).toContain("Check");
});

test("W55 facts are a dl", async () => {
  const place = await drawn(
    component("key-value", {
      items: [
        { key: "Rows", value: 1461 },
        { key: "State", value: "bad", style: "error" },
        { key: "None", value: null },
      ],
    }),
    noting().context,
  );
  expect([...place.querySelectorAll("dl > div")].map(words)).toEqual(["Rows 1,461", "State Error: bad", "None –"]);
});

test("W39 a component of an unknown type is drawn as its fallback, or else as a plain card", async () => {
  const { context } = noting();
  const fallback: Component = { id: "f", type: "text", props: { content: "47.6 N" } };
  expect(words(await drawn(component("x-acme-map", {}, { fallback }), context))).toBe("47.6 N");
  const place = await drawn(component("x-acme-map", { lat: 1 }), context);
  expect(words(place.querySelector("p"))).toBe("This could not be shown.");
  expect(words(place.querySelector("details"))).toContain("x-acme-map");
});

test("W84 a component of the host replaces ours; if it throws, it shows an error card and the rest stays", async () => {
  const { createComponents } = await import("../src/index.js");
  const registry = createComponents({
    "status-card": ({ props }) => document.createTextNode(`mine: ${String(props.title)}`),
    text: () => {
      throw new Error("broken");
    },
  });
  const { context } = noting({ registry });
  const group = component("group", {
    children: [
      component("status-card", { title: "A" }),
      component("text", { content: "B" }),
      component("markdown", { content: "C" }),
    ] as never,
  });
  const place = await drawn(group, context);
  const own = [...place.querySelectorAll("arp-own")];
  expect(words(own[0] ?? null)).toBe("mine: A");
  expect(words(own[1] ?? null)).toContain("This could not be shown.");
  expect(words(own[1] ?? null)).toContain("broken");
  expect(words(place.querySelector("arp-markdown"))).toBe("C");
});

test("a component that failed is drawn again when it changes", async () => {
  const { createComponents } = await import("../src/index.js");
  const registry = createComponents({
    text: ({ props }) => {
      if (props.content === "bad") throw new Error("bad");
      return document.createTextNode("good");
    },
  });
  const { context } = noting({ registry });
  const shown = component("text", { content: "bad" });
  const place = await drawn(shown, context);
  expect(place.querySelector(".arp-failure")).not.toBeNull();
  await drawn({ ...shown, props: { content: "fine" } }, context, place);
  expect(words(place)).toBe("good");
});

const PEOPLE = {
  title: "People",
  headers: ["name", "age"],
  rows: [
    ["Cem", 8],
    ["Ann", 3],
    ["Bob", 5],
  ],
  sortable: true,
  searchable: true,
};

/** Return the check boxes of the rows, by their names for screen readers. */
function boxes(place: Element): Record<string, HTMLInputElement> {
  return Object.fromEntries(
    [...place.querySelectorAll<HTMLInputElement>(".arp-pick > input")].map((box) => [
      box.getAttribute("aria-label"),
      box,
    ]),
  );
}

test("selected rows are sent by their original numbers, also if the table is sorted or filtered", async () => {
  await loadComponents("table");
  const { context, answers } = noting();
  const requested = component("table", { ...PEOPLE, selectable: "many" });
  const place = await drawn(requested, context);
  const submit = () => buttons(place).find((button) => words(button) === "Submit") as HTMLButtonElement;
  expect(Object.keys(boxes(place))).toEqual(["Cem", "Ann", "Bob"]);
  expect([boxes(place).Ann?.type, submit().disabled]).toEqual(["checkbox", true]);
  buttons(place)
    .find((button) => words(button) === "name")
    ?.click();
  await ready(place);
  expect(Object.keys(boxes(place))).toEqual(["Ann", "Bob", "Cem"]);
  boxes(place).Bob?.click();
  boxes(place).Cem?.click();
  boxes(place).Ann?.click();
  boxes(place).Ann?.click();
  await ready(place);
  const filter = place.querySelector<HTMLInputElement>("[type=search]") as HTMLInputElement;
  filter.value = "ann";
  filter.dispatchEvent(new Event("input", { bubbles: true }));
  await ready(place);
  expect(Object.keys(boxes(place))).toEqual(["Ann"]);
  expect(words(place.querySelector(".arp-actions [role=status]"))).toBe("2 selected");
  submit().click();
  submit().click();
  await ready(place);
  expect(answers).toEqual([[requested.id, [0, 2]]]);
  expect(boxes(place).Ann?.disabled).toBe(true);
  expect(words(place.querySelector(".arp-standing"))).toBe("Answer sent");
});

test("a table for one selected row has a radio button with a name for each row", async () => {
  const { context, answers } = noting();
  const requested = component("table", { ...PEOPLE, selectable: "one" });
  const place = await drawn(requested, context);
  expect(boxes(place).Ann?.type).toBe("radio");
  boxes(place).Ann?.click();
  await ready(place);
  boxes(place).Bob?.click();
  await ready(place);
  expect(Object.values(boxes(place)).map(({ checked }) => checked)).toEqual([false, false, true]);
  buttons(place)
    .find((button) => words(button) === "Submit")
    ?.click();
  expect(answers).toEqual([[requested.id, 2]]);
});

test.each([
  ["answered", [0, 2], [true, false, true], "Answered"],
  ["answered", 1, [false, true, false], "Answered"],
  ["expired", null, [false, false, false], "Expired"],
  ["cancelled", null, [false, false, false], "Cancelled"],
])("a table that is %s with %j shows the selection, and is closed", async (state, answer, checked, standing) => {
  const { context, answers } = noting();
  const place = await drawn(component("table", { ...PEOPLE, selectable: "many", state, answer }), context);
  expect(Object.values(boxes(place)).map((box) => box.checked)).toEqual(checked);
  expect(Object.values(boxes(place)).every(({ disabled }) => disabled)).toBe(true);
  expect(buttons(place).some((button) => words(button) === "Submit")).toBe(false);
  expect(words(place.querySelector(".arp-standing"))).toBe(standing);
  expect(answers).toEqual([]);
});

test("a table without selection has no check boxes, and neither have the rows of further tabs", async () => {
  for (const selectable of [undefined, "none", "some", 1]) {
    const place = await drawn(
      component("table", { ...PEOPLE, ...(selectable !== undefined && { selectable }) }),
      noting().context,
    );
    expect(boxes(place)).toEqual({});
    expect(place.querySelector(".arp-standing, .arp-actions")).toBeNull();
  }
  const tabs = [{ name: "Other", headers: ["name"], rows: [["Dan"]] }];
  const place = await drawn(component("table", { ...PEOPLE, selectable: "many", tabs }), noting().context);
  expect([...place.querySelectorAll("[role=tab]")].map(words)).toEqual(["People", "Other"]);
  expect(Object.keys(boxes(place))).toEqual(["Cem", "Ann", "Bob"]);
  place.querySelectorAll<HTMLElement>("[role=tab]")[1]?.click();
  await ready(place);
  expect(boxes(place)).toEqual({});
});

test("a selection stays when rows are added, and ends for rows that are removed", async () => {
  const { context, answers } = noting();
  const requested = component("table", { ...PEOPLE, selectable: "many" });
  const place = await drawn(requested, context);
  boxes(place).Ann?.click();
  boxes(place).Bob?.click();
  await ready(place);
  const more = { ...requested, props: { ...requested.props, rows: [...PEOPLE.rows, ["Dan", 1]] } };
  await drawn(more, context, place);
  expect(Object.values(boxes(place)).map(({ checked }) => checked)).toEqual([false, true, true, false]);
  await drawn({ ...requested, props: { ...requested.props, rows: PEOPLE.rows.slice(0, 2) } }, context, place);
  buttons(place)
    .find((button) => words(button) === "Submit")
    ?.click();
  expect(answers).toEqual([[requested.id, [1]]]);
});

test.each([
  [{ required: true, value: "b" }, ["a", "b"], "b"],
  [{ required: true }, ["–", "a", "b"], null],
  [{ required: true, value: "c" }, ["–", "a", "b"], null],
  [{ value: "b" }, ["–", "a", "b"], "b"],
  [{ placeholder: "Any" }, ["Any", "a", "b"], null],
])("a choice of a form with %j offers %j", async (given, offered, chosen) => {
  await loadComponents();
  const fields = [{ name: "size", field_type: "select", options: ["a", "b"], ...given }];
  const place = await drawn(component("form", { fields }), noting().context);
  const select = place.querySelector("select") as HTMLSelectElement;
  expect([...select.options].map((option) => words(option))).toEqual(offered);
  expect(select.querySelector("[selected]")?.textContent ?? null).toBe(chosen);
  expect(place.querySelector(".arp-required") !== null).toBe("required" in given && offered[0] === "–");
});

test.each([
  ["answered", "Answered"],
  ["expired", "Expired"],
])(
  "an answer that was too late is reported at the question that is %s, and leaves the outbox",
  async (state, shown) => {
    const client = new ArpClient({ url: "http://agent.example", storage: null, WebSocket: FakeSocket as never });
    client.connect();
    await Promise.resolve();
    FakeSocket.last.welcome();
    const requested = component("confirm", ASKED);
    const { context } = noting({ client });
    const place = await drawn(requested, { ...context, answer: (one, value) => client.answer(one, value) });
    buttons(place)[0]?.click();
    const id = FakeSocket.last.of("input")[0]?.id;
    FakeSocket.last.notify({
      type: "error",
      v: 1,
      payload: { id, code: 11, error: 'confirm "q" is already answered' },
    });
    client.store.flush();
    await ready(place);
    expect(buttons(place)[0]?.disabled).toBe(false);
    await drawn({ ...requested, props: { ...ASKED, state, answer: false } }, context, place);
    expect(words(place.querySelector(".arp-standing"))).toBe(shown);
    expect(words(place.querySelector("[role=alert]"))).toContain('Confirm "q" is already answered.');
    expect(client.store.outgoing.get()).toEqual([]);
    expect(buttons(place)[0]?.disabled).toBe(true);
    client.disconnect();
  },
);
