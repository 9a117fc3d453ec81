// @vitest-environment happy-dom
/** Markup of a server is hydrated without a warning, and then replaced by elements. */

import { createSSRApp, h } from "vue";
import { renderToString } from "vue/server-renderer";
import { expect, test, vi } from "vitest";
import { delta, FakeSocket } from "../../core/tests/fakes.js";
import { ArpChat, ArpMessage, ArpProvider, ArpRenderer, useArpChat } from "../src/index.js";
import { component, mount, report, welcome, WORLD } from "./mounting.js";

const Reading = component(() => {
  const { messages, isConnected, isStreaming } = useArpChat();
  return () => h("p", { class: "reading" }, `${isConnected.value} ${isStreaming.value} ${messages.value.length}`);
});

const page = component(
  () => () =>
    h(ArpProvider, { url: WORLD.url, options: WORLD }, () => [
      h(ArpChat, { title: "Sales", suggestions: ["Q1?"] }),
      h(ArpMessage, { id: "m", role: "user", content: "Hi" }),
      h(ArpRenderer, { component: { id: "t", type: "table", props: {} } }),
      h(Reading),
    ]),
);

test("W86: hydration has no warning, and the chat is drawn afterwards", async () => {
  const complaints = [vi.spyOn(console, "error"), vi.spyOn(console, "warn")];
  const markup = await renderToString(createSSRApp(page));
  expect(markup).toContain("arp-shell");
  FakeSocket.reset();
  const { node } = await mount(page, markup);
  expect(complaints.flatMap(({ mock }) => mock.calls)).toEqual([]);
  const chat = node.querySelector("arp-chat") as HTMLElement & { heading: string; suggestions: string[] };
  expect([chat.heading, chat.suggestions, node.querySelector(".arp-shell")]).toEqual(["Sales", ["Q1?"], null]);
  expect(node.querySelectorAll("arp-message, arp-component").length).toBe(2);
  await welcome();
  await report(delta("Hello", 1));
  expect([node.querySelector(".reading")?.textContent, FakeSocket.made.length]).toEqual(["true false 1", 1]);
  for (const complaint of complaints) complaint.mockRestore();
});
