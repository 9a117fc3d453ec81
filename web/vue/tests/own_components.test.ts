// @vitest-environment happy-dom
/** Custom components in the places that the elements create for them. */

import type { Component as ArpComponent } from "@agent-rendering/core";
import { defineAsyncComponent, defineComponent, h, inject, provide, ref, shallowRef, type Component } from "vue";
import { expect, test, vi } from "vitest";
import { FakeSocket } from "../../core/tests/fakes.js";
import { ArpMessage, ArpProvider, ArpRenderer } from "../src/index.js";
import { DEFAULT_COMPONENTS, Table } from "../src/ui.js";
import { component, drawn, mount, welcome, WORLD, type Mounted } from "./mounting.js";

const map = (city: unknown, more: object = {}): ArpComponent => ({
  id: "m",
  type: "x-acme-map",
  props: { city, ...more } as ArpComponent["props"],
});
const below = (inner: ArpComponent): ArpComponent => ({ id: "g", type: "x-unknown", props: {}, fallback: inner });

const Map = defineComponent({
  props: { city: { type: String, required: true } },
  setup(props) {
    const count = ref(0);
    return () => h("button", { onClick: () => (count.value += 1) }, `${props.city.toUpperCase()} ${count.value}`);
  },
});
const own = { "x-acme-map": Map };

const shown = (props: object): Promise<Mounted> => mount(component(() => () => h(ArpRenderer, props)));

/** Draw a renderer with a component that the test can change. */
async function changing(
  first: ArpComponent,
  components: Record<string, Component>,
): Promise<[Mounted, (next: ArpComponent) => Promise<void>]> {
  const now = shallowRef(first);
  const mounted = await mount(
    component(() => () => [
      h(ArpRenderer, { component: now.value, components }),
      h("p", { class: "other" }, "unharmed"),
    ]),
  );
  return [
    mounted,
    (next) => {
      now.value = next;
      return drawn();
    },
  ];
}

test("a renderer draws a custom component with the agent's props", async () => {
  const { node } = await shown({ component: map("Ulm"), components: own });
  expect(node.querySelector("button")?.textContent).toBe("ULM 0");
});

test("inside an element a custom component is in a place, keeps its state through changes, and is removed", async () => {
  const [{ node }, change] = await changing(below(map("Ulm")), own);
  const button = node.querySelector<HTMLElement>("arp-component button");
  expect(button?.textContent).toBe("ULM 0");
  button?.click();
  await change(below(map("Bonn")));
  expect([node.querySelector("button") === button, button?.textContent]).toEqual([true, "BONN 1"]);
  await change({ id: "g", type: "table", props: { headers: [], rows: [] } });
  expect(node.querySelector("arp-place")).toBeNull();
});

test("provided values can be injected in places", async () => {
  const Painted = component(() => {
    const colour = inject("colour", "none");
    return () => h("i", colour);
  });
  const { node } = await mount(
    component(() => {
      provide("colour", "red");
      return () =>
        h(ArpProvider, { components: { "x-acme-map": Painted } }, () =>
          h(ArpRenderer, { component: below(map("Ulm")) }),
        );
    }),
  );
  expect(node.querySelector("arp-place i")?.textContent).toBe("red");
});

test("W84: a component that throws shows the error card, and is drawn again with its next version", async () => {
  const quiet = vi.spyOn(console, "warn").mockImplementation(() => undefined);
  const [{ node }, change] = await changing(below(map(7)), own);
  expect(node.querySelector(".arp-failure")?.textContent).toContain("This could not be shown.");
  expect(node.querySelector(".other")?.textContent).toBe("unharmed");
  await change(below(map("Ulm")));
  expect([node.querySelector(".arp-failure"), node.querySelector("button")?.textContent]).toEqual([null, "ULM 0"]);
  quiet.mockRestore();
});

const BAD = {
  innerHTML: "<b>x</b>",
  onclick: "window.hacked = 1",
  onClick: "window.hacked = 1",
  style: "position:fixed",
  class: "c",
  ref: "r",
  key: "k",
  is: "x",
  ONCLICK: "window.hacked = 1",
  "^onclick": "window.hacked = 1",
  ".innerHTML": "<b>x</b>",
  SRCDOC: "<b>x</b>",
  STYLE: "position:fixed",
  ref_key: "r",
  title: "T",
};

test.each([
  ["one that declares its props", Map, "<button>ULM 0</button>"],
  ["one that declares none", component(() => () => h("div")), "<div></div>"],
  ["a bare function", () => h("div"), "<div></div>"],
  ["one that is loaded later", defineAsyncComponent(async () => Map), "<button>ULM 0</button>"],
])("W78: names that mean something to Vue or the DOM have no effect on %s", async (_name, drawing, expected) => {
  const { node } = await shown({ component: map("Ulm", BAD), components: { "x-acme-map": drawing } });
  await drawn();
  expect(node.innerHTML).toBe(expected);
});

test("a component sends answers, actions and texts through the client", async () => {
  let emitted!: (name: "input" | "answer" | "action", ...given: unknown[]) => void;
  const Asking = defineComponent({
    props: { title: { type: String, default: "" } },
    emits: ["input", "answer", "action"],
    setup(_, { emit }) {
      emitted = emit as typeof emitted;
      return () => h("input");
    },
  });
  const { node } = await mount(
    component(
      () => () =>
        h(ArpProvider, { url: WORLD.url, options: WORLD, components: { choices: Asking } }, () =>
          h(ArpRenderer, { component: { id: "c", type: "choices", props: { title: "?", options: ["a", "b"] } } }),
        ),
    ),
  );
  await welcome();
  node.querySelector("input")?.dispatchEvent(new Event("input", { bubbles: true }));
  emitted("input", "a");
  emitted("action", "look", { at: 1 });
  expect(
    FakeSocket.last.of("input").map(({ input_type, data, source_component }) => [input_type, data, source_component]),
  ).toEqual([
    ["selection", { selected: ["a"] }, "c"],
    ["action", { action: "look", payload: { at: 1 } }, "c"],
  ]);
});

test("a listener for input receives answers as texts instead of the client", async () => {
  const received: string[] = [];
  const Asking = defineComponent({
    emits: ["input"],
    setup(_, { emit }) {
      return () => h("button", { onClick: () => emit("input", "yes") });
    },
  });
  const { node } = await shown({
    event: { component: "confirm", props: { title: "?" } },
    components: { confirm: Asking },
    onInput: (text: string) => received.push(text),
  });
  node.querySelector("button")?.click();
  expect(received).toEqual(["yes"]);
});

test("a built-in component does not replace itself, but may replace another type", async () => {
  const table = { id: "t", type: "table", props: { headers: [], rows: [] } };
  const { node } = await shown({ component: table, components: DEFAULT_COMPONENTS });
  expect(node.querySelectorAll("arp-component, arp-place").length).toBe(1);
  const other = await shown({ component: { ...table, type: "x-acme-grid" }, components: { "x-acme-grid": Table } });
  const inner = other.node.querySelector("arp-component") as HTMLElement & { component: ArpComponent };
  expect([inner.component.type, inner.component.props]).toEqual(["table", { headers: [], rows: [] }]);
});

test("a message is drawn from the draft's fields", async () => {
  const uiEvents = [{ tool: "", component: "x-acme-map", props: { city: "Ulm" } }];
  const { node } = await mount(component(() => () => h(ArpMessage, { role: "assistant", content: "See", uiEvents })));
  const element = node.querySelector("arp-message") as HTMLElement & { turn: { output: ArpComponent[] } };
  expect(element.turn.output.map(({ type }) => type)).toEqual(["text", "x-acme-map"]);
});
