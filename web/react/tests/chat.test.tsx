// @vitest-environment happy-dom
/** `<ArpChat>`: properties and events of the element. */

import type { FeedbackSource } from "@agent-rendering/elements";
import { expect, test, vi } from "vitest";
import { delta, message } from "../../core/tests/fakes.js";
import { ArpChat, type ArpChatProps } from "../src/index.js";
import { mount, report, welcome, WORLD } from "./mounting.js";

const asked: unknown[] = [];

/** Simulate a server with empty lists that accepts feedback. */
async function fetch(url: string, { body }: RequestInit = {}): Promise<Response> {
  asked.push([url, ...(body ? [JSON.parse(body as string)] : [])]);
  return new Response(url.includes("/_api/feedback/") ? "{}" : "[]");
}

/** Draw a chat with one answer; return its node. */
async function rated(props: ArpChatProps): Promise<HTMLElement> {
  const { node } = await mount(<ArpChat {...WORLD} fetch={fetch as never} {...props} />);
  await welcome();
  await report(delta("Hi", 1), message("turn", 2, { status: "completed" }), message("commit", 3, { final: true }));
  await vi.waitFor(() => expect(node.querySelector("arp-message .arp-under")).not.toBeNull());
  return node;
}

/** Return the rating buttons when they are drawn. */
async function thumbsOf(count: number): Promise<HTMLButtonElement[]> {
  const thumbs = () => [...document.querySelectorAll<HTMLButtonElement>("arp-rating [aria-pressed]")];
  await vi.waitFor(() => expect(thumbs().length).toBe(count));
  return thumbs();
}

test("a rating is sent to the server of the chat, then reported by onFeedback", async () => {
  const onFeedback = vi.fn();
  await rated({ onFeedback });
  const [up] = await thumbsOf(2);
  up!.click();
  await vi.waitFor(() => expect(onFeedback.mock.calls).toEqual([["t1", "up", ""]]));
  const path = "http://agent.example/_api/feedback/s";
  expect(asked).toContainEqual([path]);
  expect(asked).toContainEqual([path, { turn_id: "t1", rating: "up", comment: "" }]);
});

test("without onFeedback there are no rating buttons; an object stores the ratings itself", async () => {
  expect((await rated({})).querySelector("arp-rating")).toBeNull();
  const source: FeedbackSource = {
    of: async () => ({ rating: "down", comment: "long" }),
    give: vi.fn(async () => undefined),
  };
  await rated({ feedback: source });
  const thumbs = await thumbsOf(2);
  await vi.waitFor(() => expect(thumbs.map((one) => one.getAttribute("aria-pressed"))).toEqual(["false", "true"]));
  const [comment] = document.querySelectorAll<HTMLButtonElement>("arp-rating .arp-commented");
  expect(comment!.textContent!.trim()).toBe("long");
  comment!.click();
  await vi.waitFor(() => expect(document.querySelector<HTMLInputElement>("arp-rating input")?.value).toBe("long"));
});

test("signIn shows the way to sign in", async () => {
  const signIn = { text: "Ask Ann.", href: "/login" };
  const { node } = await mount(<ArpChat {...WORLD} fetch={fetch as never} signIn={signIn} />);
  expect(node.querySelector("arp-chat")).toHaveProperty("signIn", signIn);
});
