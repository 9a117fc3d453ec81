// @vitest-environment happy-dom
/** Markup of a server is hydrated without a warning, and then replaced by elements. */

import { StrictMode } from "react";
import { renderToString } from "react-dom/server";
import { expect, test, vi } from "vitest";
import { FakeSocket } from "../../core/tests/fakes.js";
import { ArpChat, ArpMessage, ArpProvider, ArpRenderer, useArpChat } from "../src/index.js";
import { mount, report, welcome, WORLD } from "./mounting.js";
import { delta } from "../../core/tests/fakes.js";

const Reading = () => {
  const { messages, isConnected, isStreaming } = useArpChat();
  return <p className="reading">{`${isConnected} ${isStreaming} ${messages.length}`}</p>;
};

const page = (
  <StrictMode>
    <ArpProvider {...WORLD}>
      <ArpChat title="Sales" suggestions={["Q1?"]} />
      <ArpMessage id="m" role="user" content="Hi" />
      <ArpRenderer component={{ id: "t", type: "table", props: {} }} />
      <Reading />
    </ArpProvider>
  </StrictMode>
);

test("W86: hydration has no warning, and the chat is drawn afterwards", async () => {
  const complaints = vi.spyOn(console, "error");
  const markup = renderToString(page);
  expect(markup).toContain("arp-shell");
  const { node } = await mount(page, markup);
  expect(complaints.mock.calls).toEqual([]);
  const chat = node.querySelector("arp-chat") as HTMLElement & { heading: string; suggestions: string[] };
  expect([chat.heading, chat.suggestions, node.querySelector(".arp-shell")]).toEqual(["Sales", ["Q1?"], null]);
  expect(node.querySelectorAll("arp-message, arp-component").length).toBe(2);
  await welcome();
  await report(delta("Hello", 1));
  expect([node.querySelector(".reading")?.textContent, FakeSocket.made.length]).toEqual(["true false 1", 1]);
  complaints.mockRestore();
});
