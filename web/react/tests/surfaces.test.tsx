// @vitest-environment happy-dom
/** Surfaces that an application places itself. */

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { act, createElement, type FunctionComponent, type ReactElement } from "react";
import ts from "typescript";
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
import { mount, report, welcome, WORLD } from "./mounting.js";

let side!: UseArpSurfaceReturn;
let drawings = 0;

function Side(): ReactElement {
  side = useArpSurface("side");
  drawings += 1;
  return (
    <aside title={side.info?.title}>
      {side.components.map((component) => (
        <ArpRenderer key={component.id} component={component} components={{ text: Words }} />
      ))}
    </aside>
  );
}

const Words = ({ content }: { content: string }) => <p>{content}</p>;
const Names = () => <b>{`${useArpSurfaceNames().join()}|${useArpPopupNames().join()}`}</b>;

async function shown() {
  const mounted = await mount(
    <ArpProvider {...WORLD} sessionId="s" autoConnect>
      <Names />
      <Side />
    </ArpProvider>,
  );
  await welcome();
  return mounted.node;
}

const render = (surface: string, content: string) => [
  message("render", null, { components: [{ type: "text", id: "a", props: { content } }], surface }),
];
const info = (surface: string, payload: object) => message("surface", null, { payload, surface });

test("a surface and a popup are listed and drawn where the application wants them", async () => {
  const node = await shown();
  const names = () => node.querySelector("b")?.textContent;
  expect([names(), node.querySelector("aside")?.children.length]).toEqual(["|", 0]);
  await report(info("side", { role: "toplevel", title: "Orders" }), ...render("side", "three"));
  await report(message("commit", 1, { surface: "side" }));
  expect([names(), node.querySelector("aside")?.title, node.querySelector("aside p")?.textContent]).toEqual([
    "side|",
    "Orders",
    "three",
  ]);

  const before = drawings;
  await report(
    info("pop", { role: "popup", parent: "main" }),
    ...render("pop", "sure?"),
    message("commit", 2, { surface: "pop" }),
  );
  expect([names(), drawings]).toEqual(["side|pop", before]);

  await report(message("surface", 3, { payload: {}, closed: "agent", surface: "side" }));
  expect([names(), side.components, side.info]).toEqual(["|pop", [], undefined]);
});

test("actions of the user on a surface are sent to the agent", async () => {
  await shown();
  await report({ type: "hello", v: 1, capabilities: { components: [], features: ["resume", "overlays"] } });
  const sent = () => FakeSocket.last.sent.at(-1);
  act(() => side.setFocused(true));
  expect(sent()).toMatchObject({ input_type: "focus", surface: "side" });
  act(() => side.setFocused(false));
  expect(sent()).toMatchObject({ input_type: "unfocus", surface: "side" });
  act(() => side.setSize(320.4, 200));
  expect(sent()).toMatchObject({
    input_type: "resize",
    surface: "side",
    data: { width: 320, height: 200, states: ["activated"] },
  });
  act(() => side.close());
  expect(sent()).toMatchObject({ input_type: "action", surface: "side", data: { action: "arp.close" } });
});

test("without a client a surface is empty", async () => {
  const { node } = await mount(<Side />);
  side.close();
  expect([node.querySelector("aside")?.children.length, side.components]).toEqual([0, []]);
});

test("the component of docs/web.md draws a surface and closes it", async () => {
  const page = readFileSync(resolve(import.meta.dirname, "../../../docs/web.md"), "utf8");
  const block = /^```tsx\n(.*?)^```$/ms.exec(page)?.[1] ?? "";
  const compilerOptions = { jsx: ts.JsxEmit.React, jsxFactory: "createElement", target: ts.ScriptTarget.ES2022 };
  const { outputText } = ts.transpileModule(block, { compilerOptions });
  const made = new Function("createElement", "useArpSurface", "ArpRenderer", `${outputText}\nreturn Side;`);
  const Documented = made(createElement, useArpSurface, ArpRenderer) as FunctionComponent;
  const { node } = await mount(
    <ArpProvider {...WORLD} sessionId="s" autoConnect>
      <Documented />
    </ArpProvider>,
  );
  await welcome();
  expect(node.querySelector("aside")).toBeNull();
  await report(info("activity", { role: "toplevel", title: "Activity" }), ...render("activity", "three orders"));
  await report(message("commit", 1, { surface: "activity" }));
  expect(node.querySelector("aside")?.getAttribute("aria-label")).toBe("Activity");
  expect(node.querySelector("aside")?.textContent).toContain("three orders");
  act(() => node.querySelector("button")?.click());
  expect(FakeSocket.last.sent.at(-1)).toMatchObject({ surface: "activity", data: { action: "arp.close" } });
});
