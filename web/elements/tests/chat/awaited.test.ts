/** Effects of open questions on the chat: whether an answer is awaited, and when a turn is done. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FakeSocket, message } from "../../../core/tests/fakes.js";
import { isAwaited } from "../../src/chat/status/awaited.js";
import type { ArpChat } from "../../src/chat/chat.js";
import { entered, left, report } from "./stage.js";

let chat: ArpChat;
beforeEach(async () => {
  chat = await entered();
});
afterEach(() => left(chat));

const of = (turn_id: string, ...messages: object[]) => messages.map((one) => ({ ...one, turn_id }));
const status = (name: string, more: object = {}) => message("turn", null, { status: name, ...more });
const shown = (...components: object[]) => message("render", null, { components });
const confirm = (id: string) => ({ id, type: "confirm", props: { title: id } });
const asked = (component: string) =>
  status("waiting", { permission: { component, tool: "shell", call_id: component, digest: "d" } });
const commit = (final = false) => message("commit", null, { final });
const answered = (target: string) =>
  message("patch", null, { ops: [{ op: "update", target, path: "props.state", value: "answered" }] });
const spoken = () => chat.querySelector(".arp-status")?.textContent;
/** Wait for an announcement. Its code may have to be loaded first. */
const heard = (text: string) => vi.waitFor(() => expect(spoken()).toContain(text), { timeout: 15_000 });
const awaited = () => chat.activeClient !== null && isAwaited(chat.activeClient);

test("a turn that asked for a permission is reported and announced when it is done", async () => {
  const done = vi.fn();
  chat.addEventListener("arp-done", ({ detail }: CustomEventInit) => done(detail));
  await report(chat, ...of("t1", status("running"), shown(confirm("p")), commit(), asked("p")));
  await report(chat, ...of("t1", answered("p"), commit(), status("running")));
  await report(chat, ...of("t1", status("completed"), commit(true)));
  expect(done.mock.calls).toEqual([[{ turnId: "t1", status: "completed" }]]);
  await heard("Answer complete");
});

test("a permission is requested at the message box; a later question is awaited in the conversation", async () => {
  await report(chat, ...of("t1", status("running"), shown(confirm("p")), commit(), asked("p")));
  expect(awaited()).toBe(false);
  await heard("asks for permission");
  await report(chat, ...of("t1", answered("p"), commit(), status("running")));
  await report(chat, ...of("t1", shown(confirm("q")), commit(), status("waiting")));
  expect([awaited(), spoken()]).toEqual([true, "The agent is waiting for your answer"]);
});

test("a question that a restart left open is awaited in the last turn, and no longer after a newer turn", async () => {
  await report(chat, ...of("t1", status("waiting"), shown(confirm("q")), commit(true)));
  expect(awaited()).toBe(true);
  await report(chat, ...of("t2", status("running")));
  expect(awaited()).toBe(false);
});

test("work is not announced while the agent waits for an answer", async () => {
  vi.useFakeTimers();
  try {
    chat.activeClient?.store.flush();
    void report(chat, ...of("t1", status("running")));
    void report(chat, ...of("t1", shown(confirm("p")), commit(), asked("p")));
    await vi.advanceTimersByTimeAsync(60_000);
    expect(spoken()).not.toContain("Still working");
  } finally {
    vi.useRealTimers();
  }
});

const notices = () =>
  [...chat.querySelectorAll(".arp-notice")].map((one) => one.textContent?.replace(/\s+/g, " ").trim());
const refuse = (id: unknown, error: string, code = 11) => ({ type: "error", v: 1, payload: { id, code, error } });

test.each(["error first", "answer first"])(
  "a permission that another screen answered first shows that this answer was too late (%s)",
  async (order) => {
    await report(chat, ...of("t1", status("running"), shown(confirm("p")), commit(), asked("p")));
    chat.querySelector<HTMLButtonElement>(".arp-permission button")?.click();
    const sent = FakeSocket.last.of("input").at(-1)?.id;
    const other = of("t1", answered("p"), commit(), status("running"));
    const error = refuse(sent, 'confirm "p" is already answered');
    if (order === "answer first") await report(chat, ...other);
    await report(chat, error);
    if (order === "error first") {
      expect(chat.querySelector(".arp-permission [role=alert]")).not.toBeNull();
      await report(chat, ...other);
    }
    expect(chat.querySelector(".arp-permission")).toBeNull();
    expect(notices()).toEqual([expect.stringContaining('Confirm "p" is already answered.')]);
    expect(chat.activeClient?.store.outgoing.get()).toEqual([]);
  },
);

test("an answer to a question that the agent has removed is reported, and leaves the outbox", async () => {
  await report(chat, ...of("t1", status("running"), shown(confirm("q")), commit(), status("waiting")));
  chat.activeClient?.answer(confirm("q"), true);
  await report(chat);
  const sent = FakeSocket.last.of("input").at(-1)?.id;
  await report(chat, ...of("t1", message("patch", null, { ops: [{ op: "remove", target: "q" }] }), commit()));
  await report(chat, refuse(sent, "no component 'q' on surface 'main'", 1));
  expect(notices()).toEqual([expect.stringContaining("No component 'q'")]);
  expect(chat.activeClient?.store.outgoing.get()).toEqual([]);
});
