/** W15, W16: who is at the bottom stays there, who reads further up is left alone. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Follow } from "../../src/chat/follow.js";

let scroller: HTMLElement;
let follow: Follow;
let told: boolean[];
/** What the observer of sizes calls. */
let resized: () => void;
/** Pixels of what is scrolled, of its window, and where that stands. */
let sizes: { content: number; window: number; top: number };

class Sizes {
  readonly #call: () => void;
  constructor(call: () => void) {
    this.#call = resized = () => call();
  }
  observe(): void {
    resized = this.#call;
  }
  disconnect(): void {
    resized = () => undefined;
  }
}

beforeEach(() => {
  vi.stubGlobal("ResizeObserver", Sizes);
  sizes = { content: 1000, window: 400, top: 600 };
  told = [];
  scroller = document.createElement("div");
  Object.defineProperties(scroller, {
    scrollHeight: { get: () => sizes.content },
    clientHeight: { get: () => sizes.window },
    // As browsers do it: no further than there is something.
    scrollTop: { get: () => sizes.top, set: (top: number) => (sizes.top = Math.max(0, Math.min(top, sizes.content - sizes.window))) },
  });
  follow = new Follow(scroller, document.createElement("div"), (following) => told.push(following));
  resized(); // as browsers do it when one begins to observe
});

afterEach(() => {
  follow.stop();
  vi.unstubAllGlobals();
});

/** The text grows, and the observer of sizes tells it. */
function grow(by: number): void {
  sizes.content += by;
  resized();
}

function scrollTo(top: number): void {
  scroller.scrollTop = top;
  scroller.dispatchEvent(new Event("scroll"));
}

test("W15 at the bottom the view goes with what comes", () => {
  grow(50);
  grow(500);
  expect([sizes.top, follow.following, told]).toEqual([1150, true, []]);
});

test("W15 a smaller window keeps the newest in view", () => {
  sizes.window = 250;
  resized();
  expect(sizes.top).toBe(750);
});

test.each([
  ["the wheel", () => scroller.dispatchEvent(Object.assign(new Event("wheel"), { deltaY: -3 }))],
  ["ArrowUp", () => scroller.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowUp" }))],
  ["PageUp", () => scroller.dispatchEvent(new KeyboardEvent("keydown", { key: "PageUp" }))],
  ["Home", () => scroller.dispatchEvent(new KeyboardEvent("keydown", { key: "Home" }))],
  ["the scroll bar", () => scrollTo(500)],
  [
    "a finger",
    () => {
      scroller.dispatchEvent(Object.assign(new Event("touchstart"), { touches: [{ clientY: 100 }] }));
      scroller.dispatchEvent(Object.assign(new Event("touchmove"), { touches: [{ clientY: 140 }] }));
    },
  ],
])("W15 one move upward by %s ends it, and the view stays where it is", (_way, move) => {
  move();
  const before = sizes.top;
  grow(300);
  expect([sizes.top, follow.following, told]).toEqual([before, false, [false]]);
});

test.each([
  ["the wheel downward", () => scroller.dispatchEvent(Object.assign(new Event("wheel"), { deltaY: 3 }))],
  ["another key", () => scroller.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown" }))],
  [
    "a finger that rests",
    () => {
      scroller.dispatchEvent(Object.assign(new Event("touchstart"), { touches: [{ clientY: 100 }] }));
      scroller.dispatchEvent(Object.assign(new Event("touchmove"), { touches: [{ clientY: 101 }] }));
    },
  ],
  ["our own scrolling", () => scrollTo(600)],
])("W15 %s ends nothing", (_way, move) => {
  move();
  grow(300);
  expect([sizes.top, follow.following, told]).toEqual([900, true, []]);
});

test("W15 where everything fits, a move upward means nothing", () => {
  sizes = { content: 402, window: 400, top: 2 };
  scroller.dispatchEvent(Object.assign(new Event("wheel"), { deltaY: -3 }));
  expect([follow.following, told]).toEqual([true, []]);
});

test("W16 back at the bottom it follows again, by scrolling or by the button", () => {
  scrollTo(300);
  grow(200);
  scrollTo(797);
  expect([follow.following, told]).toEqual([true, [false, true]]);
  scrollTo(300);
  follow.jump();
  expect([sizes.top, told]).toEqual([800, [false, true, false, true]]);
  grow(100);
  expect(sizes.top).toBe(900);
});

test("W15 scrolling down, but not to the bottom, follows nothing", () => {
  scrollTo(100);
  scrollTo(400);
  grow(300);
  expect([sizes.top, follow.following, told]).toEqual([400, false, [false]]);
});

test("W88 when it is over it hears nothing more", () => {
  follow.stop();
  scroller.dispatchEvent(Object.assign(new Event("wheel"), { deltaY: -3 }));
  scrollTo(100);
  grow(10);
  expect([sizes.top, told]).toEqual([100, []]);
});
