/** Rendering on a server: `window` is not used, and the markup has the content that needs no scripts. */

import { renderToString } from "react-dom/server";
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

const complaints = vi.spyOn(console, "error").mockImplementation(() => undefined);

afterEach(() => {
  expect(complaints.mock.calls).toEqual([]);
});

test("there is no document", () => {
  expect([typeof document, typeof window]).toEqual(["undefined", "undefined"]);
});

test("W86: a chat is rendered as its heading and suggestions", () => {
  const chat = (
    <ArpChat
      url="/"
      title="Sales"
      description="Ask"
      suggestions={["Q1?"]}
      theme="dark"
      components={DEFAULT_COMPONENTS}
    />
  );
  expect(renderToString(chat)).toBe(
    '<div class="arp-host" style="height:100%"><section class="arp arp-shell" aria-busy="true"><h2>Sales</h2><p>Ask</p><ul><li>Q1?</li></ul></section></div>',
  );
});

test("W86: a message is rendered as its text, a component as an empty host", () => {
  expect(renderToString(<ArpMessage id="m" role="user" content="Hi <b>" />)).toBe(
    '<div class="arp-message-host arp-message--user"><p class="arp-shell">Hi &lt;b&gt;</p></div>',
  );
  expect(renderToString(<ArpRenderer component={{ id: "t", type: "table", props: {} }} />)).toBe(
    '<div class="arp-component-host"></div>',
  );
  expect(renderToString(<Table headers={["a"]} rows={[]} />)).toBe('<div class="arp-component-host"></div>');
});

test("W86: hooks return the state before connecting", () => {
  const Reading = () => {
    const { client, state, status } = useArp({ url: "/", sessionId: "s" });
    const chat = useArpChat({ url: "/" });
    const received = [
      client,
      state.connected,
      status.phase,
      chat.messages.length,
      chat.client,
      chat.sendMessage("Hi"),
      useArpTurnIds().length,
      useArpTurn("t"),
    ];
    return <>{JSON.stringify(received)}</>;
  };
  expect(
    renderToString(
      <ArpProvider url="/">
        <Reading />
      </ArpProvider>,
    ),
  ).toBe("[null,false,&quot;idle&quot;,0,null,null,0,null]");
});

test("W86: a custom component is drawn on the server", () => {
  const Map = ({ city }: { city: string }) => <b>{city}</b>;
  const shown = (
    <ArpRenderer
      component={{ id: "m", type: "x-acme-map", props: { city: "Ulm" } }}
      components={{ "x-acme-map": Map }}
    />
  );
  expect(renderToString(shown)).toBe("<b>Ulm</b>");
});

test("W86: the activity panel is drawn on the server", () => {
  const card = {
    name: "query",
    displayName: "Query",
    status: "done",
    startTime: 0,
    elapsed: "1.0s",
    callId: "a",
  } as const;
  expect(renderToString(<ArpActivityPanel toolCards={[card]} open />)).toContain("Ran Query");
  const run = {
    callId: "b",
    tool: "load",
    args: "{}",
    ok: null,
    error: null,
    progress: { call_id: "b", text: "3 of 4 <b>" },
  };
  const running = { ...card, displayName: "Load", status: "running", callId: "b", run } as const;
  expect(renderToString(<ArpActivityPanel toolCards={[running]} open />).replaceAll("<!-- -->", "")).toContain(
    'Running Load <span dir="auto">3 of 4 &lt;b&gt;</span>',
  );
});
