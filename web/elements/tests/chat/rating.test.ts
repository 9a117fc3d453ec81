/** Ratings of answers: a thumb, a comment, and their withdrawal. */

import { expect, test, vi } from "vitest";

import { createContext } from "../../src/base/context.js";
import { ArpRating, type FeedbackSource, type Rating } from "../../src/chat/message/rating.js";
import { serverFeedback } from "../../src/chat/message/server_feedback.js";

async function shownOf(source: FeedbackSource): Promise<ArpRating> {
  const element = document.createElement("arp-rating") as ArpRating;
  element.turnId = "t1";
  element.context = createContext();
  element.source = source;
  document.body.append(element);
  await vi.waitFor(() => expect(element.querySelectorAll("[aria-pressed]").length).toBe(2));
  return element;
}

const shown = (of: Rating | null, give: FeedbackSource["give"]): Promise<ArpRating> =>
  shownOf({ of: async () => of, give });

const pressed = (element: ArpRating) =>
  [...element.querySelectorAll("[aria-pressed]")].map((one) => one.getAttribute("aria-pressed"));

test("a thumb is stored, then a comment; the same thumb again withdraws the rating", async () => {
  const given: Rating[] = [];
  const element = await shown(null, async (_, rating) => void given.push(rating));
  const [up, down] = element.querySelectorAll("button");
  const brought = vi.spyOn(Element.prototype, "scrollIntoView");
  down!.click();
  await vi.waitFor(() => expect(element.querySelector("form")).not.toBeNull());
  // The field may be below the view.
  await vi.waitFor(() => expect(brought.mock.contexts).toEqual([element.querySelector("form")]));
  brought.mockRestore();
  expect(pressed(element)).toEqual(["false", "true"]);
  element.querySelector("input")!.value = " too short ";
  element.querySelector("form")!.requestSubmit();
  await vi.waitFor(() => expect(element.querySelector("form")).toBeNull());
  down!.click();
  await vi.waitFor(() => expect(pressed(element)).toEqual(["false", "false"]));
  up!.click();
  await vi.waitFor(() => expect(pressed(element)).toEqual(["true", "false"]));
  expect(given).toEqual([
    { rating: "down" },
    { rating: "down", comment: "too short" },
    { rating: "none" },
    { rating: "up" },
  ]);
});

test("an earlier rating is shown, and is shown again after a change that was not stored", async () => {
  const element = await shown({ rating: "up", comment: "clear" }, () => Promise.reject(new Error("no")));
  await vi.waitFor(() => expect(pressed(element)).toEqual(["true", "false"]));
  element.querySelectorAll("button")[1]!.click();
  await vi.waitFor(() => expect(pressed(element)).toEqual(["true", "false"]));
  expect(element.querySelector("form")).toBeNull();
  expect(comment(element).textContent!.trim()).toBe("clear");
});

/** Return the button with the comment, or the button for a first comment. */
const comment = (element: ArpRating) => element.querySelector<HTMLButtonElement>("button:not([aria-pressed])")!;

async function opened(element: ArpRating): Promise<HTMLInputElement> {
  await vi.waitFor(() => expect(comment(element)).not.toBeNull());
  comment(element).click();
  await vi.waitFor(() => expect(element.querySelector("input")).toBe(document.activeElement));
  return element.querySelector("input")!;
}

test("an earlier comment is shown, can be changed, and is removed by a button or by emptying the field", async () => {
  const given: Rating[] = [];
  let kept: Rating = { rating: "down", comment: "too short" };
  const element = await shownOf({ of: async () => kept, give: async (_, rating) => void given.push((kept = rating)) });
  let box = await opened(element);
  expect(box.value).toBe("too short");
  box.value = "far too short";
  element.querySelector("form")!.requestSubmit();
  await vi.waitFor(() => expect(comment(element).getAttribute("aria-label")).toBe("Edit the comment: far too short"));
  expect(document.activeElement).toBe(comment(element));
  await opened(element);
  element.querySelector<HTMLButtonElement>('[aria-label="Remove the comment"]')!.click();
  await vi.waitFor(() => expect(comment(element).getAttribute("aria-label")).toBe("Add a comment"));
  box = await opened(element);
  expect(box.value).toBe("");
  box.value = "again";
  element.querySelector("form")!.requestSubmit();
  await vi.waitFor(() => expect(comment(element).textContent!.trim()).toBe("again"));
  box = await opened(element);
  box.value = "  ";
  element.querySelector("form")!.requestSubmit();
  await vi.waitFor(() => expect(comment(element).getAttribute("aria-label")).toBe("Add a comment"));
  expect(given).toEqual([
    { rating: "down", comment: "far too short" },
    { rating: "down" },
    { rating: "down", comment: "again" },
    { rating: "down" },
  ]);
});

test("the other thumb keeps the comment; Escape and an unchanged text store nothing", async () => {
  const given: Rating[] = [];
  const element = await shown({ rating: "down", comment: "long" }, async (_, rating) => void given.push(rating));
  const stopped = vi.fn();
  document.body.addEventListener("keydown", stopped);
  let box = await opened(element);
  box.value = "other";
  box.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true, cancelable: true }));
  await vi.waitFor(() => expect(comment(element).textContent!.trim()).toBe("long"));
  expect(stopped).not.toHaveBeenCalled();
  box = await opened(element);
  expect(box.value).toBe("long");
  element.querySelector("form")!.requestSubmit();
  await vi.waitFor(() => expect(element.querySelector("form")).toBeNull());
  element.querySelectorAll("button")[0]!.click();
  await vi.waitFor(() => expect(element.querySelector("input")?.value).toBe("long"));
  expect(given).toEqual([{ rating: "up", comment: "long" }]);
  document.body.removeEventListener("keydown", stopped);
});

test("the rating of another screen is shown when the reader returns, but replaces no text being written", async () => {
  let kept: { [turn: string]: Rating } = { t1: { rating: "up", comment: "one" } };
  const asked = vi.fn(async () => new Response(JSON.stringify(kept)));
  const source = serverFeedback({ sessionId: "s", sessions: { request: asked } } as never);
  const element = await shownOf(source);
  const other = await shownOf(source);
  await vi.waitFor(() => expect(comment(other).textContent!.trim()).toBe("one"));
  expect(asked).toHaveBeenCalledTimes(1);
  kept = { t1: { rating: "down", comment: "two" } };
  window.dispatchEvent(new Event("focus"));
  await vi.waitFor(() => expect(comment(element).textContent!.trim()).toBe("two"));
  expect(pressed(element)).toEqual(["false", "true"]);
  expect(asked).toHaveBeenCalledTimes(2);
  const box = await opened(element);
  box.value = "mine";
  kept = {};
  window.dispatchEvent(new Event("focus"));
  await vi.waitFor(() => expect(pressed(other)).toEqual(["false", "false"]));
  expect(box.isConnected && box.value).toBe("mine");
  element.remove();
  other.remove();
  window.dispatchEvent(new Event("focus"));
  expect(asked).toHaveBeenCalledTimes(3);
});
