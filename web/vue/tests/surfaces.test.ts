// @vitest-environment happy-dom
/** Surfaces that an application places itself. */

import { h } from "vue";
import { expect, test } from "vitest";
import { FakeSocket, message } from "../../core/tests/fakes.js";
import {
  ArpProvider,
  ArpRenderer,
  useArpPopupNames,
  useArpSurface,
  useArpSurfaceNames,
  type UseArpSurfaceReturn,
} from "../src/index.js";
import { component, mount, report, welcome, WORLD } from "./mounting.js";

let side!: UseArpSurfaceReturn;

const Words = component(() => () => null);
Object.assign(Words, { props: ["content"], setup: (props: { content: string }) => () => h("p", props.content) });

const Side = component(() => {
  side = useArpSurface("side");
  const names = useArpSurfaceNames();
  const popups = useArpPopupNames();
  return () => [
    h("b", `${names.value.join()}|${popups.value.join()}`),
    h(
      "aside",
      { title: side.info.value?.title },
      side.components.value.map((one) => h(ArpRenderer, { key: one.id, component: one, components: { text: Words } })),
    ),
  ];
});

async function shown() {
  const { url, ...options } = WORLD;
  const App = component(() => () => h(ArpProvider, { url, sessionId: "s", options: options as never }, () => h(Side)));
  const { node } = await mount(App);
  await welcome();
  return node;
}

const render = (surface: string, content: string) =>
  message("render", null, { components: [{ type: "text", id: "a", props: { content } }], surface });
const info = (surface: string, payload: object) => message("surface", null, { payload, surface });

test("a surface and a popup are listed and drawn where the application wants them", async () => {
  const node = await shown();
  const names = () => node.querySelector("b")?.textContent;
  expect([names(), node.querySelector("aside")?.children.length]).toEqual(["|", 0]);
  await report(
    info("side", { role: "toplevel", title: "Orders" }),
    render("side", "three"),
    message("commit", 1, { surface: "side" }),
  );
  expect([names(), node.querySelector("aside")?.title, node.querySelector("aside p")?.textContent]).toEqual([
    "side|",
    "Orders",
    "three",
  ]);
  await report(
    info("pop", { role: "popup", parent: "main" }),
    render("pop", "sure?"),
    message("commit", 2, { surface: "pop" }),
  );
  expect(names()).toBe("side|pop");
  await report(message("surface", 3, { payload: {}, closed: "agent", surface: "side" }));
  expect([names(), side.components.value, side.info.value]).toEqual(["|pop", [], undefined]);
});

test("actions of the user on a surface are sent to the agent", async () => {
  await shown();
  await report({ type: "hello", v: 1, capabilities: { components: [], features: ["resume", "overlays"] } });
  const sent = () => FakeSocket.last.sent.at(-1);
  side.setFocused(true);
  expect(sent()).toMatchObject({ input_type: "focus", surface: "side" });
  side.setFocused(false);
  expect(sent()).toMatchObject({ input_type: "unfocus", surface: "side" });
  side.setSize(320.4, 200);
  expect(sent()).toMatchObject({
    input_type: "resize",
    surface: "side",
    data: { width: 320, height: 200, states: ["activated"] },
  });
  side.close();
  expect(sent()).toMatchObject({ input_type: "action", surface: "side", data: { action: "arp.close" } });
});

test("without a client a surface is empty", async () => {
  await mount(Side);
  side.close();
  expect(side.components.value).toEqual([]);
});
