/** What the reader thinks of an answer: a thumb, a comment, and taking it back. */

import { expect, test, vi } from "vitest";

import { createContext } from "../../src/context.js";
import { ArpRating, type Rating } from "../../src/chat/rating.js";

async function shown(of: Rating | null, give: (turnId: string, rating: Rating) => Promise<void>): Promise<ArpRating> {
  const element = document.createElement("arp-rating") as ArpRating;
  element.turnId = "t1";
  element.context = createContext();
  element.source = { of: async () => of, give };
  document.body.append(element);
  await vi.waitFor(() => expect(element.querySelectorAll("button").length).toBe(2));
  return element;
}

const pressed = (element: ArpRating) => [...element.querySelectorAll("[aria-pressed]")].map((one) => one.getAttribute("aria-pressed"));

test("a thumb is kept, then a comment; the same thumb again takes it back", async () => {
  const given: Rating[] = [];
  const element = await shown(null, async (_, rating) => void given.push(rating));
  const [up, down] = element.querySelectorAll("button");
  down!.click();
  await vi.waitFor(() => expect(element.querySelector("form")).not.toBeNull());
  expect(pressed(element)).toEqual(["false", "true"]);
  element.querySelector("input")!.value = " too short ";
  element.querySelector("form")!.requestSubmit();
  await vi.waitFor(() => expect(element.querySelector("form")).toBeNull());
  down!.click();
  await vi.waitFor(() => expect(pressed(element)).toEqual(["false", "false"]));
  up!.click();
  await vi.waitFor(() => expect(pressed(element)).toEqual(["true", "false"]));
  expect(given).toEqual([{ rating: "down" }, { rating: "down", comment: "too short" }, { rating: "none" }, { rating: "up" }]);
});

test("what was rated before shows, and a rating that is not taken goes back", async () => {
  const element = await shown({ rating: "up" }, () => Promise.reject(new Error("no")));
  await vi.waitFor(() => expect(pressed(element)).toEqual(["true", "false"]));
  element.querySelectorAll("button")[1]!.click();
  await vi.waitFor(() => expect(pressed(element)).toEqual(["true", "false"]));
  expect(element.querySelector("form")).toBeNull();
});
