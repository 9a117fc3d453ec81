// @vitest-environment happy-dom
/** Hooks: one connection while a component is mounted, and no unnecessary rendering. */

import { act, memo, StrictMode, useEffect, type ReactElement } from "react";
import { expect, test, vi } from "vitest";
import { delta, FakeSocket, message } from "../../core/tests/fakes.js";
import {
  ArpProvider,
  useArp,
  useArpChat,
  useArpClient,
  useArpContext,
  useArpTurn,
  useArpTurnIds,
  type ChatMessage,
  type UseArpChatReturn,
  type UseArpOptions,
  type UseArpReturn,
} from "../src/index.js";
import { mount, report, welcome, WORLD } from "./mounting.js";

const input = (seq: number, sentTexts: string) =>
  message("input", seq, { input_type: "text", data: { text: sentTexts }, id: `i${seq}` });

let arp!: UseArpReturn;
let chat!: UseArpChatReturn;

function Connection(props: Partial<UseArpOptions> & { onDelta?: (text: string) => void }): ReactElement {
  const { onDelta, ...options } = props;
  arp = useArp({ ...WORLD, sessionId: "s", ...options }, onDelta ? { onDelta } : {});
  return <p>{arp.state.connected ? "online" : "offline"}</p>;
}

function Chat(props: { url?: string }): ReactElement {
  chat = useArpChat({ ...WORLD, ...props });
  return (
    <ol>
      {chat.messages.map(({ id, role, content }) => (
        <li key={id}>
          {role}: {content}
        </li>
      ))}
    </ol>
  );
}

const lines = (node: HTMLElement) => [...node.querySelectorAll("li")].map((line) => line.textContent);

test("a client connects on mount, describes itself, and disconnects on unmount", async () => {
  const { node, unmount } = await mount(<Connection />);
  expect([node.textContent, arp.client?.connected, arp.state.capabilities]).toEqual(["offline", false, null]);
  await welcome();
  expect([node.textContent, arp.state.connected, arp.state.capabilities?.components]).toEqual([
    "online",
    true,
    ["text"],
  ]);
  await unmount();
  expect(FakeSocket.last.closed).toBe(true);
});

test("a double mount of strict mode makes one socket", async () => {
  const { unmount } = await mount(
    <StrictMode>
      <Connection />
    </StrictMode>,
  );
  expect(FakeSocket.made).toHaveLength(1);
  await welcome();
  expect(arp.state.connected).toBe(true);
  await unmount();
  expect(FakeSocket.made.map(({ closed }) => closed)).toEqual([true]);
});

test("the client exists from the first render and stays the same", async () => {
  const seen = new Set<unknown>();
  const Watching = () => {
    seen.add(useArp({ ...WORLD, sessionId: "s", token: () => "inline" }).client);
    return null;
  };
  const { show } = await mount(<Watching />);
  await show(<Watching />);
  await welcome();
  expect([seen.size, seen.has(null)]).toEqual([1, false]);
});

test("without autoConnect the client waits for connect", async () => {
  await mount(<Connection autoConnect={false} />);
  expect(FakeSocket.made).toHaveLength(0);
  await act(async () => arp.connect());
  await welcome();
  expect(arp.state.connected).toBe(true);
});

test("another address creates a new client, another session keeps it", async () => {
  const { show } = await mount(<Connection />);
  await welcome();
  const [first] = FakeSocket.made;
  const before = arp.client;
  await show(<Connection sessionId="other" />);
  expect([arp.client === before, arp.client?.sessionId]).toEqual([true, "other"]);
  await show(<Connection url="http://elsewhere.example" />);
  expect([arp.client === before, first?.closed, FakeSocket.last.url]).toEqual([
    false,
    true,
    "ws://elsewhere.example/_arp/v1",
  ]);
});

test("callbacks are those of the latest render", async () => {
  const received: string[] = [];
  const { show } = await mount(<Connection onDelta={(text) => received.push(`first ${text}`)} />);
  await welcome();
  await show(<Connection onDelta={(text) => received.push(`second ${text}`)} />);
  await report(delta("a", 1));
  expect([received, FakeSocket.made.length]).toEqual([["second a"], 1]);
});

test("a chat has the sent messages and the answers", async () => {
  const { node } = await mount(<Chat />);
  await welcome();
  expect([chat.isConnected, chat.sessionId, chat.isStreaming]).toEqual([true, "s", false]);
  expect(chat.sendMessage("  ")).toBeNull();
  await act(async () => void chat.sendMessage("Hi"));
  expect([lines(node), chat.isStreaming]).toEqual([["user: Hi"], true]);
  const [sent] = FakeSocket.last.of("input");
  await report({ ...input(1, "Hi"), id: sent?.id }, delta("Hel", 2), delta("lo", 3));
  expect(lines(node)).toEqual(["user: Hi", "assistant: Hello"]);
  await report(message("commit", 4, { final: true }), message("turn", 5, { status: "completed" }));
  expect(chat.isStreaming).toBe(false);
});

test("answers, stop and files are sent", async () => {
  await mount(<Chat />);
  await welcome();
  await report(
    message("turn", 1, { status: "waiting" }),
    message("render", null, { components: [{ id: "c", type: "confirm", props: { title: "Sure?" } }] }),
    message("commit", 2),
  );
  await act(async () => {
    chat.answer({ id: "c", type: "confirm", props: { title: "Sure?" } }, true);
    chat.stop();
  });
  expect(FakeSocket.last.of("input").map(({ data, source_component }) => [data, source_component])).toEqual([
    [{ action: "confirm" }, "c"],
    [{ action: "arp.cancel", payload: {} }, null],
  ]);
});

test("W83: a message is rendered again only when its own data changes", async () => {
  const drawn = new Map<string, number>();
  const Line = memo(function Line({ message: { content, role } }: { message: ChatMessage }) {
    useEffect(() => void drawn.set(role + content.slice(0, 1), (drawn.get(role + content.slice(0, 1)) ?? 0) + 1));
    return <p>{content}</p>;
  });
  const Lines = () => useArpChat(WORLD).messages.map((one) => <Line key={one.id} message={one} />);
  await mount(<Lines />);
  await welcome();
  await report(input(1, "Question"));
  for (let seq = 2; seq < 12; seq += 1) await report(delta("a", seq));
  expect(drawn.get("userQ")).toBe(1);
  expect(drawn.get("assistanta")).toBe(10);
});

test("W83: a turn is rendered again only when something in it changes", async () => {
  const drawn: string[] = [];
  const Turn = ({ id }: { id: string }) => {
    const turn = useArpTurn(id);
    useEffect(() => void drawn.push(id));
    return <p>{turn?.output.length}</p>;
  };
  const Turns = () => useArpTurnIds().map((id) => <Turn key={id} id={id} />);
  await mount(
    <ArpProvider {...WORLD}>
      <Turns />
    </ArpProvider>,
  );
  await welcome();
  await report(input(1, "One"), { ...input(2, "Two"), turn_id: "t2" });
  drawn.length = 0;
  for (let seq = 3; seq < 8; seq += 1) await report({ ...delta("a", seq), turn_id: "t2" });
  expect(drawn).toEqual(["t2", "t2", "t2", "t2", "t2"]);
});

test("a provider gives its client, state and custom components to all components below", async () => {
  const Own = () => null;
  let seen!: ReturnType<typeof useArpContext>;
  const Below = () => {
    seen = useArpContext();
    chat = useArpChat();
    return <p>{String(useArpClient() === chat.client)}</p>;
  };
  const { node } = await mount(
    <ArpProvider {...WORLD} components={{ "x-acme-map": Own }}>
      <Below />
    </ArpProvider>,
  );
  await welcome();
  expect([node.textContent, seen.connected, seen.components["x-acme-map"] === Own]).toEqual(["true", true, true]);
  const [hello] = FakeSocket.last.of("hello");
  expect(hello?.capabilities?.components).toMatchObject({ table: 1, "x-acme-map": 1 });
  expect(FakeSocket.made).toHaveLength(1);
});

test("a provider in the draft's form provides the given values", async () => {
  let seen!: ReturnType<typeof useArpContext>;
  const Below = () => {
    seen = useArpContext();
    return null;
  };
  const capabilities = { components: ["text"], features: [] };
  await mount(
    <ArpProvider connected capabilities={capabilities} components={{}}>
      <Below />
    </ArpProvider>,
  );
  expect([seen.connected, seen.capabilities, seen.client]).toEqual([true, capabilities, null]);
});

test("chats are listed and deleted, and an error is reported", async () => {
  const requested: string[] = [];
  let isDown = false;
  const fetch = vi.fn(async (url: string, init?: RequestInit) => {
    requested.push(`${init?.method ?? "GET"} ${url}`);
    if (isDown) throw new TypeError("no network");
    return new Response(JSON.stringify([{ id: "a" }, { id: "b" }]), { status: 200 });
  });
  const Lists = () => {
    chat = useArpChat({ ...WORLD, fetch: fetch as never });
    return null;
  };
  await mount(<Lists />);
  await welcome();
  await act(() => chat.loadSessions());
  expect(chat.sessions.map(({ id }) => id)).toEqual(["a", "b"]);
  await act(() => chat.deleteSession("b"));
  expect([chat.sessions.map(({ id }) => id), requested.at(-1)]).toEqual([
    ["a"],
    "DELETE http://agent.example/_api/chats/b",
  ]);
  isDown = true;
  await act(() => chat.loadSessions());
  expect([chat.sessions.length, chat.sessionsError?.message]).toEqual([1, "TypeError: no network"]);
});

test("the old client and its messages are released when the address changes", async () => {
  const { node, show } = await mount(<Chat />);
  await welcome();
  await report(input(1, "Hi"));
  expect(lines(node)).toEqual(["user: Hi"]);
  await show(<Chat url="http://elsewhere.example" />);
  expect(lines(node)).toEqual([]);
  expect(FakeSocket.made[0]?.closed).toBe(true);
});

test("a permission of a turn that ended in a restart is listed and can be granted", async () => {
  await mount(<Chat />);
  await welcome();
  await report(
    {
      ...message("tool_start", 1, { payload: { tool: "shell", args: '{"command":"ls"}', call_id: "c1" } }),
      turn_id: "t1",
    },
    {
      ...message("render", null, { components: [{ id: "q", type: "confirm", props: { title: "Run ls?" } }] }),
      turn_id: "t1",
    },
    {
      ...message("turn", 2, {
        status: "waiting",
        permission: { component: "q", tool: "shell", call_id: "c1", digest: "d" },
      }),
      turn_id: "t1",
    },
    { ...message("commit", 3, { final: true }), turn_id: "t1" },
  );
  const [asked] = chat.permissions;
  expect([chat.isStreaming, asked?.component.props.title, asked?.run?.args]).toEqual([
    false,
    "Run ls?",
    '{"command":"ls"}',
  ]);
  expect(chat.messages.map(({ restored }) => restored)).toEqual([undefined]);
  await act(async () => {
    if (asked) chat.client?.grant(asked.component, "once", asked.permission);
    chat.client?.store.flush();
  });
  expect(chat.permissions).toEqual([]);
  expect(FakeSocket.last.of("input")[0]?.data).toEqual({ action: "confirm", payload: { scope: "once", digest: "d" } });
});
