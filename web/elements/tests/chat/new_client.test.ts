/** W51: permission requests belong to their session, also if its client is replaced, as after a new token. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FakeSocket, message } from "../../../core/tests/fakes.js";
import type { ArpChat } from "../../src/chat/chat.js";
import "../../src/chat/permissions/permissions.js";
import { Announcer } from "../../src/chat/status/announcer.js";
import { loadMessages } from "../../src/chat/timeline/timeline.js";
import { entered, left, report } from "./stage.js";

let chat: ArpChat;

/** Let a tool ask for permission `p`. */
const ask = (session_id = "s") =>
  report(
    chat,
    ...[
      message("turn", 1, {
        status: "waiting",
        permission: { component: "p", tool: "shell", input: '{"command":"ls"}', editable: true },
      }),
      message("render", null, { components: [{ id: "p", type: "confirm", props: { message: "Run?" } }] }),
      message("commit", 2, { final: false }),
    ].map((one) => ({ ...one, session_id })),
  );
const card = () => chat.querySelector<HTMLElement>(".arp-permission");
const field = () => chat.querySelector<HTMLTextAreaElement>(".arp-permission textarea");
/** Return the announcements of permission requests. */
const said = (say: { mock: { calls: [text: string, ...unknown[]][] } }) =>
  say.mock.calls.filter(([text]) => text.includes("asks for permission"));
const press = async (button: string) => {
  card()?.querySelector<HTMLButtonElement>(button)?.click();
  await report(chat);
};

/** Replace the client by one with another token. */
async function reconnect(session: string, token: string): Promise<void> {
  chat.session = session;
  chat.token = token;
  await chat.updateComplete;
  await vi.waitFor(() => expect(FakeSocket.last.closed).toBe(false));
  FakeSocket.last.welcome({ session_id: session });
  await report(chat);
}

beforeEach(async () => {
  await loadMessages();
  chat = await entered();
  await report(chat);
  await ask();
  await vi.waitFor(() => expect(card()).toBe(document.activeElement));
  (document.activeElement as HTMLElement).blur();
});

afterEach(() => left(chat));

test("W51 an edited input and its fault are kept, and the request is not announced and not focused again", async () => {
  await press(".arp-edit");
  (field() as HTMLTextAreaElement).value = "rm";
  field()?.dispatchEvent(new Event("input", { bubbles: true }));
  await press(".arp-permission-buttons button");
  const sockets = FakeSocket.made.length;
  const say = vi.spyOn(Announcer.prototype, "say");
  await reconnect("s", "two");
  expect([FakeSocket.made.length, card()]).toEqual([sockets + 1, null]);
  await ask();
  await vi.waitFor(() => expect(field()?.value).toBe("rm"));
  expect(card()?.querySelector("[role=alert]")).not.toBeNull();
  expect(document.activeElement).toBe(document.body);
  expect(said(say)).toEqual([]);
});

test("W51 a request of another session with the same id begins without the edit, and is announced and focused", async () => {
  await press(".arp-edit");
  (document.activeElement as HTMLElement).blur();
  const say = vi.spyOn(Announcer.prototype, "say");
  await reconnect("other", "two");
  await ask("other");
  await vi.waitFor(() => expect(card()).toBe(document.activeElement));
  expect(field()).toBeNull();
  expect(said(say)).toHaveLength(1);
});

test("W51 a request that comes back after a refused answer is announced again", async () => {
  const say = vi.spyOn(Announcer.prototype, "say");
  await press(".arp-permission-buttons button");
  expect(card()).toBeNull();
  const { id } = FakeSocket.last.of("input").at(-1) ?? {};
  await report(chat, { type: "error", v: 1, payload: { error: "too late", code: 11, id } });
  await vi.waitFor(() => expect(card()).not.toBeNull());
  expect(said(say)).toHaveLength(1);
});
