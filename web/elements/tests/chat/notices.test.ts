/** Notices above the message box, for errors that belong to no turn. */

import type { ArpClient, ErrorPayload, Outgoing } from "@agent-rendering/core";
import { translator } from "@agent-rendering/core/strings";
import { render } from "lit";
import { beforeEach, expect, test, vi } from "vitest";
import { createContext } from "../../src/base/context.js";
import { Announcer } from "../../src/chat/status/announcer.js";
import { Notices } from "../../src/chat/status/notices.js";

let host: HTMLElement & { requestUpdate(): void };
let announcer: Announcer;
let notices: Notices;
let reported: string[];
let focused: ReturnType<typeof vi.fn<() => void>>;

const place = () => {
  const drawn = document.createElement("div");
  render(notices.draw(createContext()), drawn);
  return drawn;
};
const lines = () => [...place().querySelectorAll("li span")].map((one) => one.textContent?.trim());

/** Return a client with errors, and with inputs that they may refuse. */
function clientOf(errors: readonly ErrorPayload[], outgoing: readonly object[] = []) {
  const discard = vi.fn();
  const store = { errors: { get: () => errors }, outgoing: { get: () => outgoing as readonly Outgoing[] } };
  return { client: { store, discard } as unknown as ArpClient, discard };
}

beforeEach(() => {
  focused = vi.fn();
  host = Object.assign(document.createElement("div"), { requestUpdate: () => undefined, focus: focused });
  reported = [];
  host.addEventListener("arp-error", ({ detail }: CustomEventInit) => reported.push(detail.error));
  announcer = new Announcer(translator("en"));
  notices = new Notices(host, announcer);
});

test("the last three errors are shown, each is announced, and closing one returns the focus", () => {
  const say = vi.spyOn(announcer, "say");
  for (const error of ["one", "two", "three", "four"]) notices.add({ error, code: 0 });
  expect([lines(), say.mock.lastCall]).toEqual([
    ["Two.", "Three.", "Four."],
    ["Four.", true],
  ]);
  place().querySelectorAll("button")[1]?.click();
  expect([lines(), focused.mock.calls.length]).toEqual([["Two.", "Four."], 1]);
});

test("an error that is reported twice for the same input is shown once", () => {
  notices.add({ error: "no", code: 0, id: "i" });
  notices.add({ error: "no, again", code: 0, id: "i" });
  expect(lines()).toEqual(["No."]);
});

test("errors of a client are reported once each, and shown unless the banner or a bubble shows them", () => {
  const bubble = { id: "b", message: { data: {}, source_component: null } };
  const errors = [
    { error: "beside everything", code: 3 },
    { error: "token", code: 14 },
    { error: "agent", code: 0, detail: "workflow" },
    { error: "refused", code: 11, id: "b" },
  ] as ErrorPayload[];
  const { client } = clientOf(errors, [bubble]);
  notices.update(client);
  notices.update(client);
  expect([reported, lines()]).toEqual([["beside everything", "token", "agent", "refused"], ["Beside everything."]]);
});

test("the error of an answer to a removed question is shown, and the answer leaves the outbox", () => {
  const answer = { id: "a", message: { data: {}, source_component: "q" } };
  const { client, discard } = clientOf([{ error: "no component 'q'", code: 1, id: "a" } as ErrorPayload], [answer]);
  notices.update(client);
  expect([lines().length, discard.mock.calls]).toEqual([1, [["a"]]]);
});

test("a new client begins without notices", () => {
  notices.add({ error: "old", code: 0 });
  notices.clear();
  expect(notices.draw(createContext())).not.toHaveProperty("strings");
});
