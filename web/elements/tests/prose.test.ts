/** Prose that grows: nodes stay, the text is complete, and nothing in it is executed. */

import { beforeEach, describe, expect, test, vi } from "vitest";
import { createContext } from "../src/base/context.js";
import "../src/components/index.js";
import { isBearable, lex, safeCut } from "../src/markdown/lexer.js";
import { decodeEntities } from "../src/markdown/entities.js";
import { ProseView } from "../src/markdown/view.js";
import { warmProse } from "../src/markdown/warm.js";
import { words } from "./context.js";

const TEXT = `# Title

First **paragraph** with a [link](https://example.org/a).

- one
- two
  - three

\`\`\`js
const a = 1;
\`\`\`

| a | b |
| - | - |
| 1 | 2 |

Last one.`;

let place: HTMLElement;
let view: ProseView;
const context = createContext();

beforeEach(() => {
  place = document.createElement("div");
  document.body.replaceChildren(place);
  view = new ProseView(place, context);
});

/** Return the tags and words of a place, without the differences between a growing and a finished text. */
function shape(of: Element): string {
  return [...of.children]
    .map(
      (child) =>
        `${child.localName}:${child.localName === "arp-code" ? (child as unknown as { code: string }).code : words(child)}`,
    )
    .join("|");
}

test("W20 complete blocks keep their nodes, whatever follows", () => {
  view.update(TEXT.slice(0, 80), true, context);
  const [title, first] = [...place.children];
  for (let end = 81; end <= TEXT.length; end += 1) view.update(TEXT.slice(0, end), true, context);
  view.update(TEXT, false, context);
  expect(place.children[0]).toBe(title);
  expect(place.children[1]).toBe(first);
});

test("a text that arrives letter by letter is drawn like a text that arrives at once", () => {
  const other = document.createElement("div");
  new ProseView(other, context).update(TEXT, false, context);
  for (let end = 1; end <= TEXT.length; end += 1) view.update(TEXT.slice(0, end), true, context);
  view.update(TEXT, false, context);
  expect(shape(place)).toBe(shape(other));
  expect(shape(place)).toBe(
    "h3:Title|p:First paragraph with a link.|ul:onetwothree|arp-code:const a = 1;|div:ab12|p:Last one.",
  );
});

test("W19 while a text is written, no mark is shown that will disappear", () => {
  const text = "Some **bold words** and `code` and [a link](https://example.org) at the end of it.";
  const seen: string[] = [];
  for (let end = 1; end <= text.length; end += 1) {
    view.update(text.slice(0, end), true, context);
    seen.push(place.textContent ?? "");
  }
  expect(seen.filter((shown) => /[*`[\]]/.test(shown))).toEqual([]);
});

test("a later definition turns its references into links", () => {
  view.update("See [the docs][d] first.\n\nMore text.\n\n", true, context);
  expect(place.querySelector("a")).toBeNull();
  view.update("See [the docs][d] first.\n\nMore text.\n\n[d]: https://example.org/docs\n\nEnd.", false, context);
  expect(place.querySelector("a")?.getAttribute("href")).toBe("https://example.org/docs");
});

test("a definition that is still being written makes no link", () => {
  const time = vi.spyOn(performance, "now");
  const text = "See [the docs][d].\n\n[d]: https://example.org/docs\n\nEnd.";
  for (let end = 1; end <= text.length; end += 1) {
    time.mockReturnValue(1000 * end);
    view.update(text.slice(0, end), true, context);
  }
  time.mockRestore();
  expect(place.querySelector("a")?.getAttribute("href")).toBe("https://example.org/docs");
  expect([...place.children].map(({ textContent }) => textContent)).toEqual(["See the docs.", "End."]);
});

test("a heading has the same level after every redraw", () => {
  const time = vi.spyOn(performance, "now");
  for (let end = 1; end <= 12; end += 1) {
    time.mockReturnValue(1000 * end);
    view.update("### Deep one".slice(0, end), true, context);
  }
  time.mockRestore();
  expect([...place.children].map(({ localName }) => localName)).toEqual(["h3"]);
});

test("CRLF ends a line, also if a piece of text ends between its characters", () => {
  view.update("One\r\n\r", true, context);
  const [first] = place.children;
  view.update("One\r\n\r\nTwo", false, context);
  expect([...place.children].map(({ textContent }) => textContent)).toEqual(["One", "Two"]);
  expect(place.children[0]).toBe(first);
});

test("the blocks of a long text are in small parts, and a heading is in the part of its text", () => {
  const text = Array.from({ length: 2500 }, (_, at) => (at === 31 ? "# Head" : `Number ${at}.`)).join("\n\n");
  const time = vi.spyOn(performance, "now").mockReturnValue(0); // no slice takes too long
  view.update(text, false, context);
  time.mockRestore();
  expect([...place.querySelectorAll("p")].map((one) => one.textContent)).toEqual(
    text.split("\n\n").filter((one) => one !== "# Head"),
  );
  const parts = [...place.querySelectorAll(".arp-part"), place];
  expect(Math.max(...parts.map(({ childElementCount }) => childElementCount))).toBeLessThanOrEqual(40);
  expect(place.querySelector("h3")?.nextElementSibling?.textContent).toBe("Number 32.");
});

test("text that is added to one part does not change the nodes of other parts", () => {
  const begin = Array.from({ length: 100 }, (_, at) => `Number ${at}.\n\n`).join("");
  const time = vi.spyOn(performance, "now").mockReturnValue(0);
  view.update(begin, true, context);
  const before = [...place.querySelectorAll("p")];
  time.mockReturnValue(10_000);
  view.update(`${begin}And one more`, true, context);
  time.mockReturnValue(20_000);
  view.update(`${begin}And one more, which grows.\n\nLast`, true, context);
  time.mockRestore();
  const after = [...place.querySelectorAll("p")];
  expect(after.slice(0, 100).every((one, at) => one === before[at])).toBe(true);
  expect(after.slice(100).map((one) => one.textContent)).toEqual(["And one more, which grows.", "Last"]);
});

test("a different text replaces the old one", () => {
  view.update("One.\n\nTwo.", false, context);
  view.update("Three.", false, context);
  expect(words(place)).toBe("Three.");
});

test("a change of the context draws the pending text at once, also during a pause", async () => {
  const time = vi.spyOn(performance, "now").mockReturnValue(0);
  view.update("One.", true, context);
  time.mockReturnValue(20); // drawing took this long
  await new Promise((resolve) => setTimeout(resolve));
  view.update("One. Two", true, context);
  expect(view.busy).toBe(true); // drawing pauses
  view.update("One. Two", true, createContext({ dollarMath: true }));
  time.mockRestore();
  expect(words(place)).toBe("One. Two");
});

test("warming up draws one block of each kind in its place, and removes them", () => {
  vi.stubGlobal("requestIdleCallback", (act: () => void) => act());
  let drawn = "";
  vi.spyOn(Element.prototype, "getBoundingClientRect").mockImplementation(function (this: Element) {
    drawn = [...(this.parentElement === place ? this.querySelectorAll("*") : [])]
      .map(({ localName }) => localName)
      .join(" ");
    return new DOMRect();
  });
  warmProse(place);
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  expect(drawn).toMatch(/h3.*em.*strong.*code.* a.*ol.*table.*arp-code/);
  expect(place.childNodes).toHaveLength(0);
});

test("headings skip no level, and begin below the headings of the page", () => {
  view.update("### Deep\n\n# Top\n\n#### Lower", false, context);
  expect([...place.children].map(({ localName }) => localName)).toEqual(["h3", "h3", "h4"]);
});

describe("W76 HTML of an agent is shown as text", () => {
  test.each([
    ["<script>alert(1)</script>", "<script>alert(1)</script>"],
    ["<img src=x onerror=alert(1)>", "<img src=x onerror=alert(1)>"],
    ["a <b onclick=alert(1)>b</b>", "a <b onclick=alert(1)>b</b>"],
    ["<svg><style>*{}</style></svg>", "<svg><style>*{}</style></svg>"],
    ["[x](javascript:alert(1))", "x"],
    ["[x](&#106;avascript:alert(1))", "x"],
    ["[x](data:text/html,<script>)", "x"],
    ["[x](vbscript:msgbox)", "x"],
    ["[x]( java\nscript:alert)", "[x]( java script:alert)"],
  ])("%j", (source, shown) => {
    view.update(source, false, context);
    expect(words(place)).toBe(shown);
    expect(place.querySelectorAll("script, img, svg, style, b, a[href^='j'], a[href^='d']")).toHaveLength(0);
    expect(
      [...place.querySelectorAll("*")]
        .flatMap((one) => [...one.attributes])
        .filter(({ name }) => name.startsWith("on")),
    ).toEqual([]);
  });
});

test("W79 a link to another host opens in a new tab, sends no referrer, and names the host", () => {
  view.update("[here](https://evil.example/a) and [good.example](https://evil.example/b)", false, context);
  const [one, other] = [...place.querySelectorAll("a")];
  expect([one?.rel, one?.target, one?.title]).toEqual(["noopener noreferrer nofollow", "_blank", "Opens evil.example"]);
  expect(words(other ?? null)).toBe("good.example (evil.example)");
});

test("dollar signs are math only if that is enabled and the text is not money", () => {
  const kinds = (source: string, withDollars: boolean) =>
    (lex(source, {}, withDollars)[0] as { tokens: { type: string }[] }).tokens.map(({ type }) => type);
  expect(kinds("it costs $5 and $10", false)).toEqual(["text"]);
  expect(kinds("it costs $5 and $10", true)).toEqual(["text"]);
  expect(kinds("so $x^2$ is", true)).toEqual(["text", "math", "text"]);
  expect(kinds("so $$x^2$$ is", false)).toEqual(["text", "math", "text"]);
  expect(kinds("so \\(x\\) is", false)).toEqual(["text", "math", "text"]);
});

test("W81 texts that would block the page are shown without formatting", () => {
  expect(isBearable("> ".repeat(10_000))).toBe(false);
  expect(isBearable("- ".repeat(10_000))).toBe(false);
  expect(isBearable("a".repeat(1_000_000))).toBe(false);
  expect(isBearable(`${" ".repeat(4000)}- deep`)).toBe(false);
  expect(isBearable(`${"-".repeat(80)}\n> - 1. nested\n${"a b ".repeat(1000)}`)).toBe(true);
  view.update("> ".repeat(10_000), false, context);
  expect(place.children).toHaveLength(1);
});

test("W81 a table of more than 100 columns is shown as it was written", () => {
  const wide = (columns: number) =>
    `|${" a |".repeat(columns)}\n|${"-|".repeat(columns)}\n|${" 1 |".repeat(columns)}\n`;
  view.update(wide(100), false, context);
  expect(place.querySelectorAll("th")).toHaveLength(100);
  view.update(wide(101), false, context);
  expect(place.querySelector("table")).toBeNull();
  expect(place.textContent).toContain("a | a | a");
});

test("a long text is cut where both parts keep their meaning", () => {
  const source = "one\n\ntwo\n\n```\ncode\n\nmore\n```\n\nthree\n\n- a\n\n- b\n\nfour";
  expect(source.slice(safeCut(source, 6, 1000))).toBe("```\ncode\n\nmore\n```\n\nthree\n\n- a\n\n- b\n\nfour");
  expect(source.slice(safeCut(source, 12, 1000))).toBe("three\n\n- a\n\n- b\n\nfour");
  expect(source.slice(safeCut(source, 40, 1000))).toBe("four");
});

test("character references are decoded, once", () => {
  expect(decodeEntities("&lt;b&gt; &amp;amp; &#65;&#x42; &nope; &#0; &eacute;")).toBe("<b> &amp; AB &nope; \ufffd é");
});
