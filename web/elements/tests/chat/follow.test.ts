/** W15, W16: a reader at the end stays at the end, and a reader further up is not moved. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Follow } from "../../src/chat/timeline/follow.js";

let scroller: HTMLElement;
let content: HTMLElement;
let follow: Follow;
let received: boolean[];
/** Report sizes, as the ResizeObserver does. */
let resized: () => void;
/** Height of the content and of the view, and the scroll position, in pixels. */
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
  received = [];
  scroller = document.createElement("div");
  Object.defineProperties(scroller, {
    scrollHeight: { get: height },
    clientHeight: { get: () => sizes.window },
    // As in browsers, the position is limited to the content.
    scrollTop: {
      get: () => sizes.top,
      set(top: number) {
        sizes.top = Math.max(0, Math.min(top, height() - sizes.window));
      },
    },
  });
  scroller.getBoundingClientRect = () => ({ top: 0, bottom: sizes.window }) as DOMRect;
  content = document.createElement("div");
  content.style.paddingTop = "20px";
  document.body.append(content);
  follow = new Follow(scroller, content, (following) => received.push(following));
  resized(); // browsers report once when observing begins
});

afterEach(() => {
  follow.stop();
  content.remove();
  vi.unstubAllGlobals();
});

/** Return the height of the content, with the room of the input. */
function height(): number {
  const requested = content.querySelector<HTMLElement>(".arp-asked");
  return Math.max(
    sizes.content,
    requested ? Number(requested.dataset.at) + Number.parseFloat(requested.style.getPropertyValue("--_arp-room")) : 0,
  );
}

/** Let the content grow, and report it. */
function grow(by: number): void {
  sizes.content += by;
  resized();
}

function scrollTo(top: number): void {
  scroller.scrollTop = top;
  scroller.dispatchEvent(new Event("scroll"));
}

test("W15 at the end the view follows new content", () => {
  grow(50);
  grow(500);
  expect([sizes.top, follow.following, received]).toEqual([1150, true, []]);
});

test("W15 a smaller view stays at the end", () => {
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
])("W15 one move upward by %s ends following, and the view stays where it is", (_way, move) => {
  move();
  const before = sizes.top;
  grow(300);
  expect([sizes.top, follow.following, received]).toEqual([before, false, [false]]);
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
])("W15 %s does not end following", (_way, move) => {
  move();
  grow(300);
  expect([sizes.top, follow.following, received]).toEqual([900, true, []]);
});

test("W15 if all content fits into the view, a move upward is ignored", () => {
  sizes = { content: 402, window: 400, top: 2 };
  scroller.dispatchEvent(Object.assign(new Event("wheel"), { deltaY: -3 }));
  expect([follow.following, received]).toEqual([true, []]);
});

test("W16 following resumes at the end, by scrolling or by the button", () => {
  scrollTo(300);
  grow(200);
  scrollTo(797);
  expect([follow.following, received]).toEqual([true, [false, true]]);
  scrollTo(300);
  follow.jump();
  expect([sizes.top, received]).toEqual([800, [false, true, false, true]]);
  grow(100);
  expect(sizes.top).toBe(900);
});

test("W15 scrolling down, but not to the end, does not resume following", () => {
  scrollTo(100);
  scrollTo(400);
  grow(300);
  expect([sizes.top, follow.following, received]).toEqual([400, false, [false]]);
});

test("W88 after stop, no event has an effect", () => {
  follow.stop();
  scroller.dispatchEvent(Object.assign(new Event("wheel"), { deltaY: -3 }));
  scrollTo(100);
  grow(10);
  expect([sizes.top, received]).toEqual([100, []]);
});

/** Return a message at a position in the content, with a height in pixels. */
function message(at: number, height = 40): HTMLElement {
  const made = document.createElement("div");
  const sent = made.appendChild(document.createElement("article"));
  const rect = () => ({ top: at - sizes.top, bottom: at - sizes.top + height }) as DOMRect;
  made.getBoundingClientRect = sent.getBoundingClientRect = rect;
  Object.defineProperty(sent, "offsetHeight", { value: height });
  made.dataset.at = String(at);
  content.append(made);
  return made;
}

/** Add an answer that ends at a position. */
function answer(to: number): void {
  const reply = content.appendChild(document.createElement("article"));
  reply.getBoundingClientRect = () => ({ top: 0, bottom: to - sizes.top }) as DOMRect;
}

/** Add a text that is being written and begins at a position. */
function written(at: number): void {
  const turn = content.appendChild(document.createElement("div"));
  turn.toggleAttribute("data-written", true);
  turn.innerHTML = `<div class="arp-reply"><p></p></div>`;
  (turn.querySelector("p") as Element).getBoundingClientRect = () => ({ top: at - sizes.top }) as DOMRect;
}

/** Let the content end at a position, with a text that is being written or a complete answer, and report it. */
function end(at: number, how: "written" | "whole"): void {
  content.querySelector("[data-written]")?.remove();
  if (how === "written") written(1010);
  sizes.content = at;
  answer(at - 10);
  resized();
}

test("W15 an input moves to the top, and nothing scrolls until the answer has filled the view", () => {
  follow.ask(message(960));
  expect([height(), sizes.top]).toEqual([1340, 940]);
  end(1200, "written");
  end(1340, "whole");
  expect([sizes.top, follow.following]).toEqual([940, true]);
  end(1400, "written");
  expect([sizes.top, follow.following]).toEqual([1000, true]);
  end(2000, "whole"); // the input is out of view: only the end counts
  expect([sizes.top, received]).toEqual([1600, []]);
});

test("W15 complete content that does not fit leaves the input at the top, and following ends", () => {
  follow.ask(message(960));
  end(2000, "whole");
  expect([sizes.top, follow.following, received]).toEqual([940, false, [false]]);
  end(2100, "written"); // the content in between has not been seen
  expect(sizes.top).toBe(940);
  follow.jump();
  end(2200, "whole");
  expect([sizes.top, received]).toEqual([1800, [false, true]]);
});

test("W15 text that begins below the view, after content that does not fit, leaves the input at the top", () => {
  follow.ask(message(960));
  written(1500); // a table is in between
  sizes.content = 1600;
  answer(1590);
  resized();
  expect([sizes.top, follow.following]).toEqual([940, false]);
});

test("W15 text after a component that is still loading, and so has no height, leaves the input at the top", () => {
  follow.ask(message(960));
  written(1200);
  const [reply] = [...content.querySelectorAll("[data-written] .arp-reply")];
  reply?.prepend(document.createElement("arp-not-loaded"));
  sizes.content = 1600;
  answer(1590);
  resized();
  expect([sizes.top, follow.following]).toEqual([940, false]);
});

test("W15 buttons or space below the view do not end following", () => {
  follow.ask(message(960));
  answer(1330);
  sizes.content = 1370;
  resized();
  expect([sizes.top, follow.following, received]).toEqual([940, true, []]);
});

test("W15 following resumes when the content fits into the view again, as after closing a fold", () => {
  follow.ask(message(960));
  end(2000, "whole");
  end(1300, "whole");
  expect([sizes.top, received]).toEqual([940, [false, true]]);
});

test("W15 a smaller view first reduces the room, then keeps the end in view; a larger view restores the room", () => {
  const requested = message(960);
  follow.ask(requested);
  end(1250, "written");
  sizes.window = 320;
  resized();
  expect([sizes.top, requested.style.getPropertyValue("--_arp-room")]).toEqual([940, "300px"]);
  sizes.window = 200;
  resized();
  expect(sizes.top).toBe(1050);
  sizes.window = 400;
  resized();
  expect([sizes.top, follow.following]).toEqual([940, true]);
});

test("W17 a reader who scrolls away is not moved back; back at the end, the input is kept in view again", () => {
  follow.ask(message(960));
  scrollTo(500);
  end(1100, "whole");
  expect([sizes.top, follow.following]).toEqual([500, false]);
  scrollTo(940);
  end(2000, "whole");
  expect([sizes.top, received]).toEqual([940, [false, true, false]]);
});

test("W17 when another element draws the input, the view does not move, wherever the reader is", () => {
  follow.ask(message(960));
  const first = content.querySelector(".arp-asked") as HTMLElement;
  follow.redrawn(message(960));
  expect([sizes.top, first.classList.contains("arp-asked"), content.querySelectorAll(".arp-asked").length]).toEqual([
    940,
    false,
    1,
  ]);
  scrollTo(300);
  follow.redrawn(message(960));
  resized();
  expect([sizes.top, follow.following]).toEqual([300, false]);
});

test("W15 an input without room stays where it is, and is not pushed out of view", () => {
  follow.ask(message(960), false);
  expect([height(), sizes.top]).toEqual([1000, 600]);
  end(1200, "whole");
  expect(sizes.top).toBe(800);
  end(2000, "whole");
  expect([sizes.top, follow.following]).toEqual([940, false]);
});

test("W15 the end of an input longer than half of the view is shown in the upper half", () => {
  follow.ask(message(700, 900));
  expect(sizes.top).toBe(1400); // the input ends at 1600, and the view is 400 high
});

test("W15 when the input is forgotten, the view follows the end", () => {
  follow.ask(message(960));
  end(2000, "whole");
  follow.ask(null);
  expect([sizes.top, follow.following, content.querySelector(".arp-asked")]).toEqual([1600, true, null]);
});
