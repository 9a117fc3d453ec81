/** Lines of code that grows. */

import { beforeEach, expect, test } from "vitest";
import { loadGrammars } from "../src/code/highlight.js";
import { CodeLines } from "../src/code/lines.js";

let place: HTMLElement;
let lines: CodeLines;

beforeEach(() => {
  place = document.createElement("code");
  lines = new CodeLines(place);
});

const boxes = () => [...place.children].map(({ textContent }) => textContent);

test("code that arrives letter by letter is always divided into lines", () => {
  const code = "let a = 1;\n\nlet b;\n";
  for (let end = 0; end <= code.length; end += 1) lines.show(code.slice(0, end), "");
  expect(boxes()).toEqual(["let a = 1;\n", "\n", "let b;\n"]);
  expect([...place.children].every((box) => box.childNodes.length === 1)).toBe(true);
});

test("a line keeps its text node while others are added", () => {
  lines.show("one\ntw", "");
  const [first, second] = [...place.children].map(({ firstChild }) => firstChild);
  lines.show("one\ntwo\nthree", "");
  expect([place.children[0]?.firstChild, place.children[1]?.firstChild]).toEqual([first, second]);
  expect(boxes()).toEqual(["one\n", "two\n", "three\n"]);
});

test("highlighting changes only lines with colours, in their boxes; other code replaces all lines", async () => {
  await loadGrammars();
  lines.show("plain\nlet a = 1;", "");
  const before = [...place.children];
  const text = before[0]?.firstChild;
  lines.show("plain\nlet a = 1;", "js");
  expect([...place.children]).toEqual(before);
  expect(place.children[0]?.firstChild).toBe(text);
  expect([...place.querySelectorAll("[class^=arp-k-]")].map((one) => `${one.className} ${one.textContent}`)).toEqual([
    "arp-k-keyword let",
    "arp-k-number 1",
  ]);
  lines.show("const c = 2;", "js");
  expect(boxes()).toEqual(["const c = 2;\n"]);
  lines.show("words", "");
  expect(place.textContent).toBe("words\n");
  expect(place.querySelector("[class^=arp-k-]")).toBeNull();
});

test("very long code is complete, in few boxes", () => {
  const code = Array.from({ length: 12_345 }, (_, at) => `line ${at}`).join("\n");
  lines.show(code, "");
  expect(place.childElementCount).toBe(124);
  lines.show(`${code}\nmore`, "");
  expect(place.textContent).toBe(`${code}\nmore\n`);
});
