/** Announcements: the lines of an answer, and the progress of a turn. */

import { translator } from "@agent-rendering/core/strings";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { Announcer } from "../../src/chat/status/announcer.js";
import { linesOf } from "../../src/chat/message/drawn_text.js";

const read = (html: string) => {
  const place = document.createElement("div");
  place.innerHTML = html;
  return linesOf([place]);
};

test.each([
  ["<h2>Head</h2><p>One <em>two</em>\nthree</p>", ["Head", "One two three"]],
  ["<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul>", ["a", "b", "c"]],
  ["<table><tr><th>x</th><th>y</th></tr><tr><td>1</td><td>2</td></tr></table>", ["x; y", "1; 2"]],
  ["<pre><code>one\n  two</code></pre>", ["one", "two"]],
  ["a<br>b", ["a", "b"]],
  ["<p>is <math><mi>a</mi><annotation>a^2</annotation></math></p>", ["is a^2"]],
  ['<p><img alt="A ship"> sails <button>Copy</button><span aria-hidden="true">!</span></p>', ["A ship sails"]],
  ["", []],
])("%s", (html, lines) => {
  expect(read(html)).toEqual(lines);
});

let regions: HTMLElement[];
let announcer: Announcer;
beforeEach(() => {
  vi.useFakeTimers();
  regions = Array.from({ length: 3 }, () => document.createElement("div"));
  announcer = new Announcer(translator("en"));
  announcer.attach(...(regions as [HTMLElement, HTMLElement, HTMLElement]));
});
afterEach(() => {
  announcer.rest();
  vi.useRealTimers();
});

test("progress is announced from time to time, but not while a question waits for the reader", () => {
  let isAsked = true;
  announcer.isAsking = () => isAsked;
  announcer.working();
  vi.advanceTimersByTime(30_000);
  expect(regions[0]?.textContent).toBe("Answering");
  isAsked = false;
  vi.advanceTimersByTime(8000);
  expect(regions[0]?.textContent).toBe("Still working");
});

test("each line of an answer is a paragraph, up to 2,000 characters, and five answers are kept", () => {
  for (let answer = 0; answer < 7; answer += 1) announcer.finish("Done", [`${answer}`, "x".repeat(1999), "beyond"]);
  const spoken = regions[2] as HTMLElement;
  expect([...spoken.children].map(({ children }) => children.length)).toEqual([2, 2, 2, 2, 2]);
  expect(spoken.firstElementChild?.firstElementChild?.textContent).toBe("2");
});
