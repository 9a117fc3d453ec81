/** Rendering on a server: `window` is not used, and the markup has the content that needs no scripts. */

import { createSSRApp, h, type Component } from "vue";
import { renderToString } from "vue/server-renderer";
import { afterEach, expect, test, vi } from "vitest";
import {
  ArpActivityPanel,
  ArpChat,
  ArpMessage,
  ArpProvider,
  ArpRenderer,
  useArp,
  useArpChat,
  useArpTurn,
  useArpTurnIds,
} from "../src/index.js";
import { DEFAULT_COMPONENTS, Table } from "../src/ui.js";
import { component } from "./server_component.js";

const complaints = vi.spyOn(console, "warn").mockImplementation(() => undefined);

const render = (root: Component) => renderToString(createSSRApp(root));

afterEach(() => {
  expect(complaints.mock.calls).toEqual([]);
});

test("there is no document", () => {
  expect([typeof document, typeof window]).toEqual(["undefined", "undefined"]);
});

test("W86: a chat is rendered as its heading and suggestions", async () => {
  const chat = component(
    () => () =>
      h(ArpChat, {
        url: "/",
        title: "Sales",
        description: "Ask",
        suggestions: ["Q1?"],
        components: DEFAULT_COMPONENTS,
      }),
  );
  expect((await render(chat)).replaceAll(/<!--[^>]*-->/g, "")).toBe(
    '<div class="arp-host" style="height:100%;"><section class="arp arp-shell" aria-busy="true"><h2>Sales</h2><p>Ask</p><ul><li>Q1?</li></ul></section></div>',
  );
});

test("W86: a message is rendered as its text, a component as an empty host", async () => {
  const shown = component(() => () => [
    h(ArpMessage, { id: "m", role: "user", content: "Hi <b>" }),
    h(ArpRenderer, { component: { id: "t", type: "table", props: {} } }),
    h(Table as Component, { headers: ["a"], rows: [] }),
  ]);
  expect((await render(shown)).replaceAll(/<!--[^>]*-->/g, "")).toBe(
    '<div class="arp-message-host arp-message--user"><p class="arp-shell">Hi &lt;b&gt;</p></div><div class="arp-component-host"></div><div class="arp-component-host"></div>',
  );
});

test("W86: composables return the state before connecting", async () => {
  const Reading = component(() => {
    const { client, connected, status } = useArp({ url: "/", sessionId: "s" });
    const chat = useArpChat({ url: "/" });
    const ids = useArpTurnIds();
    const turn = useArpTurn("t");
    return () =>
      JSON.stringify([
        client.value,
        connected.value,
        status.value.phase,
        chat.messages.value.length,
        chat.sendMessage("Hi"),
        ids.value.length,
        turn.value,
      ]);
  });
  const page = component(() => () => h(ArpProvider, { url: "/" }, () => h(Reading)));
  expect((await render(page)).replaceAll(/<!--[^>]*-->/g, "")).toBe("[null,false,&quot;idle&quot;,0,null,0,null]");
});

test("W86: a custom component is drawn on the server", async () => {
  const Map = { props: ["city"], render: ({ city }: { city: string }) => h("b", city) } as Component;
  const page = component(
    () => () =>
      h(ArpRenderer, {
        component: { id: "m", type: "x-acme-map", props: { city: "Ulm" } },
        components: { "x-acme-map": Map },
      }),
  );
  expect(await render(page)).toBe("<b>Ulm</b>");
});

test("W86: the activity panel is drawn on the server", async () => {
  const card = {
    name: "query",
    displayName: "Query",
    status: "done",
    startTime: 0,
    elapsed: "1.0s",
    callId: "a",
  } as const;
  expect(await render(component(() => () => h(ArpActivityPanel, { toolCards: [card], open: true })))).toContain(
    "Ran Query",
  );
  const run = {
    callId: "b",
    tool: "load",
    args: "{}",
    ok: null,
    error: null,
    progress: { call_id: "b", text: "3 of 4 <b>" },
  };
  const running = { ...card, displayName: "Load", status: "running", callId: "b", run } as const;
  const shown = await render(component(() => () => h(ArpActivityPanel, { toolCards: [running], open: true })));
  expect(shown.replaceAll(/<!--[^>]*-->/g, "")).toContain('Running Load <span dir="auto">3 of 4 &lt;b&gt;</span>');
});
