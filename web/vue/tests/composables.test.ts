// @vitest-environment happy-dom
/** Composables: one connection while a component is mounted, and no unnecessary rendering. */

import { defineComponent, effectScope, h, inject, nextTick, onUpdated, ref, unref, type PropType } from "vue";
import { expect, test, vi } from "vitest";
import { delta, FakeSocket, message } from "../../core/tests/fakes.js";
import {
  ArpCapabilitiesKey,
  ArpComponentsKey,
  ArpConnectedKey,
  ArpProvider,
  useArp,
  useArpChat,
  useArpClient,
  useArpTurn,
  useArpTurnIds,
  type ChatMessage,
  type UseArpChatReturn,
  type UseArpReturn,
} from "../src/index.js";
import { component, drawn, mount, report, welcome, WORLD } from "./mounting.js";

const input = (seq: number, sentTexts: string) =>
  message("input", seq, { input_type: "text", data: { text: sentTexts }, id: `i${seq}` });

let arp!: UseArpReturn;
let chat!: UseArpChatReturn;

const Connection = component(() => {
  arp = useArp({ ...WORLD, sessionId: "s" });
  return () => h("p", arp.connected.value ? "online" : "offline");
});

const Chat = component(() => {
  chat = useArpChat(WORLD);
  return () =>
    h(
      "ol",
      chat.messages.value.map(({ id, role, content }) => h("li", { key: id }, `${role}: ${content}`)),
    );
});

const lines = (node: HTMLElement) => [...node.querySelectorAll("li")].map((line) => line.textContent);

test("a client connects on mount, describes itself, and disconnects on unmount", async () => {
  const { node, unmount } = await mount(Connection);
  expect([node.textContent, arp.client.value?.connected, arp.capabilities.value]).toEqual(["offline", false, null]);
  await welcome();
  expect([node.textContent, arp.capabilities.value?.components, FakeSocket.made.length]).toEqual([
    "online",
    ["text"],
    1,
  ]);
  unmount();
  expect(FakeSocket.last.closed).toBe(true);
});

test("the address and the session may be refs: another address creates a new client, another session keeps it", async () => {
  const url = ref("http://agent.example");
  const sessionId = ref("s");
  await mount(
    component(() => {
      arp = useArp({ ...WORLD, url, sessionId: () => sessionId.value });
      return () => null;
    }),
  );
  await welcome();
  const first = arp.client.value;
  sessionId.value = "other";
  await nextTick();
  expect([arp.client.value === first, first?.sessionId]).toEqual([true, "other"]);
  url.value = "http://elsewhere.example";
  await drawn();
  expect([arp.client.value === first, FakeSocket.made[0]?.closed, FakeSocket.last.url]).toEqual([
    false,
    true,
    "ws://elsewhere.example/_arp/v1",
  ]);
  await welcome();
  expect(arp.connected.value).toBe(true);
});

test("without autoConnect the client waits for connect", async () => {
  await mount(
    component(() => {
      arp = useArp({ ...WORLD, sessionId: "s", autoConnect: false });
      return () => null;
    }),
  );
  expect(FakeSocket.made).toHaveLength(0);
  arp.connect();
  await drawn();
  await welcome();
  expect(arp.connected.value).toBe(true);
  arp.disconnect();
  expect(arp.connected.value).toBe(false);
});

test("outside of a component a client lives as long as its scope", async () => {
  const scope = effectScope();
  scope.run(() => (arp = useArp({ ...WORLD, sessionId: "s" })));
  await drawn();
  await welcome();
  expect(arp.connected.value).toBe(true);
  scope.stop();
  expect(FakeSocket.last.closed).toBe(true);
});

test("a chat has the sent messages and the answers", async () => {
  const { node } = await mount(Chat);
  await welcome();
  expect([chat.isConnected.value, chat.sessionId.value, chat.isStreaming.value]).toEqual([true, "s", false]);
  expect(chat.sendMessage(" ")).toBeNull();
  chat.sendMessage("Hi");
  await drawn();
  expect([lines(node), chat.isStreaming.value]).toEqual([["user: Hi"], true]);
  const [sent] = FakeSocket.last.of("input");
  await report({ ...input(1, "Hi"), id: sent?.id }, delta("Hel", 2), delta("lo", 3));
  expect(lines(node)).toEqual(["user: Hi", "assistant: Hello"]);
  await report(message("commit", 4, { final: true }), message("turn", 5, { status: "completed" }));
  expect(chat.isStreaming.value).toBe(false);
});

test("W83: a message is rendered again only when its own data changes", async () => {
  const updates: string[] = [];
  const Line = defineComponent({
    props: { message: { type: Object as PropType<ChatMessage>, required: true } },
    setup(props) {
      onUpdated(() => updates.push(props.message.role));
      return () => h("p", props.message.content);
    },
  });
  await mount(
    component(() => {
      const { messages } = useArpChat(WORLD);
      return () => messages.value.map((one) => h(Line, { key: one.id, message: one }));
    }),
  );
  await welcome();
  await report(input(1, "Question"), delta("a", 2));
  updates.length = 0;
  for (let seq = 3; seq < 8; seq += 1) await report(delta("a", seq));
  expect(updates).toEqual(["assistant", "assistant", "assistant", "assistant", "assistant"]);
});

test("W83: a turn changes only when something in it does", async () => {
  const updates: string[] = [];
  const Turn = defineComponent({
    props: { id: { type: String, required: true } },
    setup(props) {
      const turn = useArpTurn(() => props.id);
      onUpdated(() => updates.push(props.id));
      return () => h("p", JSON.stringify(turn.value?.output));
    },
  });
  const Turns = component(() => {
    const ids = useArpTurnIds();
    return () => ids.value.map((id) => h(Turn, { key: id, id }));
  });
  await mount(component(() => () => h(ArpProvider, { url: WORLD.url, options: WORLD }, () => h(Turns))));
  await welcome();
  await report(input(1, "One"), { ...input(2, "Two"), turn_id: "t2" });
  updates.length = 0;
  await report({ ...delta("a", 3), turn_id: "t2" });
  await report({ ...delta("b", 4), turn_id: "t2" });
  expect(updates).toEqual(["t2", "t2"]);
});

test("a provider gives its client, state and custom components to all components below", async () => {
  const Own = component(() => () => null);
  let seen: unknown[] = [];
  const Below = component(() => {
    const connected = inject(ArpConnectedKey, false);
    const capabilities = inject(ArpCapabilitiesKey, null);
    const components = inject(ArpComponentsKey, {});
    const client = useArpClient();
    chat = useArpChat();
    return () => {
      seen = [
        unref(connected),
        unref(capabilities)?.components,
        Object.keys(unref(components)),
        client.value === chat.client.value,
      ];
      return null;
    };
  });
  await mount(
    component(
      () => () => h(ArpProvider, { url: WORLD.url, options: WORLD, components: { "x-acme-map": Own } }, () => h(Below)),
    ),
  );
  expect(seen).toEqual([false, undefined, ["x-acme-map"], true]);
  await welcome();
  expect(seen).toEqual([true, ["text"], ["x-acme-map"], true]);
  expect(FakeSocket.last.of("hello")[0]?.capabilities?.components).toMatchObject({ table: 1, "x-acme-map": 1 });
});

test("chats are listed and deleted, and an error is reported", async () => {
  const requested: string[] = [];
  let isDown = false;
  const fetch = vi.fn(async (url: string, init?: RequestInit) => {
    requested.push(`${init?.method ?? "GET"} ${url}`);
    if (isDown) throw new TypeError("no network");
    return new Response(JSON.stringify([{ id: "a" }, { id: "b" }]), { status: 200 });
  });
  await mount(
    component(() => {
      chat = useArpChat({ ...WORLD, fetch: fetch as never });
      return () => null;
    }),
  );
  await welcome();
  await chat.loadSessions();
  await chat.deleteSession("b");
  expect([chat.sessions.value.map(({ id }) => id), requested.at(-1)]).toEqual([
    ["a"],
    "DELETE http://agent.example/_api/chats/b",
  ]);
  isDown = true;
  await chat.loadSessions();
  expect([chat.sessions.value.length, chat.sessionsError.value?.message]).toEqual([1, "TypeError: no network"]);
});

test("a permission of a turn that ended in a restart is listed and can be granted", async () => {
  await mount(Chat);
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
  const [asked] = chat.permissions.value;
  expect([chat.isStreaming.value, asked?.component.props.title, asked?.run?.args]).toEqual([
    false,
    "Run ls?",
    '{"command":"ls"}',
  ]);
  expect(chat.messages.value.map(({ restored }) => restored)).toEqual([undefined]);
  if (asked) chat.client.value?.grant(asked.component, "once", asked.permission);
  chat.client.value?.store.flush();
  await nextTick();
  expect(chat.permissions.value).toEqual([]);
  expect(FakeSocket.last.of("input")[0]?.data).toEqual({ action: "confirm", payload: { scope: "once", digest: "d" } });
});
