// @vitest-environment happy-dom
/** Custom components in the places that the elements create for them. */

import type { Component } from "@agent-rendering/core";
import { act, createContext, useContext, useState } from "react";
import { expect, test, vi } from "vitest";
import { ArpMessage, ArpProvider, ArpRenderer, type ArpComponentProps } from "../src/index.js";
import { DEFAULT_COMPONENTS, Table } from "../src/ui.js";
import { FakeSocket } from "../../core/tests/fakes.js";
import { mount, report, welcome, WORLD, type Mounted } from "./mounting.js";
import { message } from "../../core/tests/fakes.js";

const map = (city: unknown, more: object = {}): Component => ({
  id: "m",
  type: "x-acme-map",
  props: { city, ...more } as Component["props"],
});
const grouped = (...children: Component[]): Component => ({
  id: "g",
  type: "x-unknown",
  props: {},
  fallback: children[0] ?? null,
});

let given!: ArpComponentProps & { city: string };

function Map(props: ArpComponentProps & { city: string }) {
  given = props;
  const [count, setCount] = useState(0);
  return (
    <button onClick={() => setCount(count + 1)}>
      {props.city.toUpperCase()} {count}
    </button>
  );
}

const own = { "x-acme-map": Map };

/** Wait until the elements are drawn, and the portals inside them. */
async function drawn(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await act(async () => Promise.resolve());
}

async function shown(children: React.ReactNode): Promise<Mounted> {
  const mounted = await mount(children);
  await drawn();
  return mounted;
}

test("a renderer draws a custom component with the agent's props", async () => {
  const { node } = await shown(<ArpRenderer component={map("Ulm")} components={own} />);
  expect(node.querySelector("button")?.textContent).toBe("ULM 0");
  expect([given.component.id, given._restored]).toEqual(["m", false]);
});

test("inside an element a custom component is in a place, keeps its state through changes, and is removed", async () => {
  const { node, show } = await shown(<ArpRenderer component={grouped(map("Ulm"))} components={own} />);
  const button = node.querySelector<HTMLElement>("arp-component button");
  expect(button?.textContent).toBe("ULM 0");
  await act(async () => button?.click());
  await show(<ArpRenderer component={grouped(map("Bonn"))} components={own} />);
  await drawn();
  expect([node.querySelector("button") === button, button?.textContent]).toEqual([true, "BONN 1"]);
  await show(<ArpRenderer component={{ id: "g", type: "table", props: { headers: [], rows: [] } }} components={own} />);
  await drawn();
  expect(node.querySelector("arp-place")).toBeNull();
});

test("React's context works in places", async () => {
  const Colour = createContext("none");
  const Painted = () => <i>{useContext(Colour)}</i>;
  const { node } = await shown(
    <Colour.Provider value="red">
      <ArpProvider components={{ "x-acme-map": Painted }}>
        <ArpRenderer component={grouped(map("Ulm"))} />
      </ArpProvider>
    </Colour.Provider>,
  );
  expect(node.querySelector("i")?.textContent).toBe("red");
});

test("W84: a component that throws shows the error card, and is drawn again with its next version", async () => {
  const silent = vi.spyOn(console, "error").mockImplementation(() => undefined);
  const both = (city: unknown) => (
    <>
      <ArpRenderer component={grouped(map(city))} components={own} />
      <p>unharmed</p>
    </>
  );
  const { node, show } = await shown(both(7));
  expect(node.querySelector(".arp-failure")?.textContent).toContain("This could not be shown.");
  expect(node.querySelector("p:last-child")?.textContent).toBe("unharmed");
  await show(both("Ulm"));
  await drawn();
  expect([node.querySelector(".arp-failure"), node.querySelector("button")?.textContent]).toEqual([null, "ULM 0"]);
  silent.mockRestore();
});

test("W78: props cannot be markup, handlers, or names with a meaning in React", async () => {
  const Spread = (props: object) => (
    <div
      {...Object.fromEntries(
        Object.entries(props).filter(([name]) => !/^(answer|action|context|component|onInput|_)/.test(name)),
      )}
    />
  );
  const bad = {
    dangerouslySetInnerHTML: { __html: "<b>x</b>" },
    onClick: "x",
    ref: "r",
    key: "k",
    children: ["x"],
    className: "c",
    ONCLICK: "x",
    SRCDOC: "x",
    STYLE: "position:fixed",
    ".innerHTML": "x",
    title: "T",
  };
  const { node } = await shown(<ArpRenderer component={map("Ulm", bad)} components={{ "x-acme-map": Spread }} />);
  expect(node.innerHTML).toBe('<div city="Ulm" title="T"></div>');
});

test("a component sends answers, actions and texts through the client", async () => {
  const Asking = (props: ArpComponentProps) => {
    given = props as typeof given;
    return null;
  };
  await shown(
    <ArpProvider {...WORLD} components={{ choices: Asking, confirm: Asking }}>
      <ArpRenderer component={{ id: "c", type: "choices", props: { title: "?", options: ["a", "b"] } }} />
    </ArpProvider>,
  );
  await welcome();
  await act(async () => {
    given.onInput("a");
    given.action("look", { at: 1 });
  });
  expect(
    FakeSocket.last.of("input").map(({ input_type, data, source_component }) => [input_type, data, source_component]),
  ).toEqual([
    ["selection", { selected: ["a"] }, "c"],
    ["action", { action: "look", payload: { at: 1 } }, "c"],
  ]);
});

test("an answered question is restored", async () => {
  const Asking = ({ _restored }: ArpComponentProps) => <i>{String(_restored)}</i>;
  const { node } = await shown(
    <ArpRenderer
      component={{ id: "c", type: "confirm", props: { title: "?", state: "answered" } }}
      components={{ confirm: Asking }}
    />,
  );
  expect(node.querySelector("i")?.textContent).toBe("true");
});

test("without a client an answer goes to onInput as a text", async () => {
  const received: string[] = [];
  const Asking = (props: ArpComponentProps) => {
    given = props as typeof given;
    return null;
  };
  await shown(
    <ArpRenderer
      event={{ tool: "ask", component: "confirm", props: { title: "?" } }}
      components={{ confirm: Asking }}
      onInput={(text) => received.push(text)}
    />,
  );
  given.onInput("yes");
  expect(received).toEqual(["yes"]);
});

test("a built-in component does not replace itself", async () => {
  const { node } = await shown(
    <ArpRenderer
      component={{ id: "t", type: "table", props: { headers: [], rows: [] } }}
      components={DEFAULT_COMPONENTS}
    />,
  );
  expect(node.querySelectorAll("arp-component, arp-place").length).toBe(1);
  const other = await shown(
    <ArpRenderer
      component={{ id: "t", type: "x-acme-grid", props: { headers: [], rows: [] } }}
      components={{ "x-acme-grid": Table }}
    />,
  );
  const inner = other.node.querySelector("arp-component") as HTMLElement & { component: Component };
  expect(inner.component.type).toBe("table");
});

test("a message is drawn from a turn, and from the draft's fields", async () => {
  const { node } = await shown(
    <ArpMessage
      role="assistant"
      content="See"
      uiEvents={[{ tool: "", component: "x-acme-map", props: { city: "Ulm" } }]}
      components={own}
    />,
  );
  const element = node.querySelector("arp-message") as HTMLElement & { turn: { output: Component[] } };
  expect(element.turn.output.map(({ type }) => type)).toEqual(["text", "x-acme-map"]);
});

test("a place stays through changes of the conversation", async () => {
  const { node } = await shown(
    <ArpProvider {...WORLD} components={own}>
      <ArpRenderer component={grouped(map("Ulm"))} />
    </ArpProvider>,
  );
  await welcome();
  await report(message("turn", 1, { status: "running" }));
  await drawn();
  expect(node.querySelectorAll("button").length).toBe(1);
});

test("renderMarkdown replaces the built-in Markdown", async () => {
  const { node } = await shown(
    <ArpMessage id="m" content="So it is." renderMarkdown={(content) => <u>{content}</u>} />,
  );
  expect([node.querySelector("u")?.textContent, node.querySelector("arp-prose")]).toEqual(["So it is.", null]);
});
