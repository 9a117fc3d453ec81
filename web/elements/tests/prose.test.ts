/** Prose that grows: nodes stay, text is whole, nothing is run. */

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

/** The tags and words of a place, without what differs between a growing and a finished text. */
function shape(of: Element): string {
  return [...of.children]
    .map(
      (child) =>
        `${child.localName}:${child.localName === "arp-code" ? (child as unknown as { code: string }).code : words(child)}`,
    )
    .join("|");
}

test("W20 blocks that are complete keep their nodes, whatever comes after them", () => {
  view.update(TEXT.slice(0, 80), true, context);
  const [title, first] = [...place.children];
  for (let end = 81; end <= TEXT.length; end += 1) view.update(TEXT.slice(0, end), true, context);
  view.update(TEXT, false, context);
  expect(place.children[0]).toBe(title);
  expect(place.children[1]).toBe(first);
});

test("a text that came letter by letter shows as one that came whole", () => {
  const other = document.createElement("div");
  new ProseView(other, context).update(TEXT, false, context);
  for (let end = 1; end <= TEXT.length; end += 1) view.update(TEXT.slice(0, end), true, context);
  view.update(TEXT, false, context);
  expect(shape(place)).toBe(shape(other));
  expect(shape(place)).toBe(
    "h3:Title|p:First paragraph with a link.|ul:onetwothree|arp-code:const a = 1;|div:ab12|p:Last one.",
  );
});

test("W19 while a text is written no mark shows that will not stay", () => {
  const text = "Some **bold words** and `code` and [a link](https://example.org) at the end of it.";
  const seen: string[] = [];
  for (let end = 1; end <= text.length; end += 1) {
    view.update(text.slice(0, end), true, context);
    seen.push(place.textContent ?? "");
  }
  expect(seen.filter((shown) => /[*`[\]]/.test(shown))).toEqual([]);
});

test("a definition that comes later makes links of what refers to it", () => {
  view.update("See [the docs][d] first.\n\nMore text.\n\n", true, context);
  expect(place.querySelector("a")).toBeNull();
  view.update("See [the docs][d] first.\n\nMore text.\n\n[d]: https://example.org/docs\n\nEnd.", false, context);
  expect(place.querySelector("a")?.getAttribute("href")).toBe("https://example.org/docs");
});

test("a definition that is still being written leads nowhere yet", () => {
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

test("a heading has the same level however often it was drawn", () => {
  const time = vi.spyOn(performance, "now");
  for (let end = 1; end <= 12; end += 1) {
    time.mockReturnValue(1000 * end);
    view.update("### Deep one".slice(0, end), true, context);
  }
  time.mockRestore();
  expect([...place.children].map(({ localName }) => localName)).toEqual(["h3"]);
});

test("lines that end as on Windows, or in the middle of their end, are lines", () => {
  view.update("One\r\n\r", true, context);
  const [first] = place.children;
  view.update("One\r\n\r\nTwo", false, context);
  expect([...place.children].map(({ textContent }) => textContent)).toEqual(["One", "Two"]);
  expect(place.children[0]).toBe(first);
});

test("the blocks of a long text are in parts, a few in each, and a heading with what it heads", () => {
  const text = Array.from({ length: 2500 }, (_, at) => (at === 31 ? "# Head" : `Number ${at}.`)).join("\n\n");
  const time = vi.spyOn(performance, "now").mockReturnValue(0); // no slice is too long
  view.update(text, false, context);
  time.mockRestore();
  expect([...place.querySelectorAll("p")].map((one) => one.textContent)).toEqual(
    text.split("\n\n").filter((one) => one !== "# Head"),
  );
  const parts = [...place.querySelectorAll(".arp-part"), place];
  expect(Math.max(...parts.map(({ childElementCount }) => childElementCount))).toBeLessThanOrEqual(40);
  expect(place.querySelector("h3")?.nextElementSibling?.textContent).toBe("Number 32.");
});

test("what is written into a part leaves the nodes of others alone", () => {
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

test("another text than before is drawn again", () => {
  view.update("One.\n\nTwo.", false, context);
  view.update("Three.", false, context);
  expect(words(place)).toBe("Three.");
});

test("what is being written is there at once when it is drawn in another way, also while it rests", async () => {
  const time = vi.spyOn(performance, "now").mockReturnValue(0);
  view.update("One.", true, context);
  time.mockReturnValue(20); // so long did drawing take
  await new Promise((resolve) => setTimeout(resolve));
  view.update("One. Two", true, context);
  expect(view.busy).toBe(true); // it rests
  view.update("One. Two", true, createContext({ dollarMath: true }));
  time.mockRestore();
  expect(words(place)).toBe("One. Two");
});

test("what is drawn to warm up is laid out where the next will stand, and nothing of it stays", () => {
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

test("headings skip no level, and begin below those of the page", () => {
  view.update("### Deep\n\n# Top\n\n#### Lower", false, context);
  expect([...place.children].map(({ localName }) => localName)).toEqual(["h3", "h3", "h4"]);
});

describe("W76 what an agent writes is text", () => {
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

test("W79 a link that leads away opens beside, sends no referrer, and says where it goes", () => {
  view.update("[here](https://evil.example/a) and [good.example](https://evil.example/b)", false, context);
  const [one, other] = [...place.querySelectorAll("a")];
  expect([one?.rel, one?.target, one?.title]).toEqual(["noopener noreferrer nofollow", "_blank", "Opens evil.example"]);
  expect(words(other ?? null)).toBe("good.example (evil.example)");
});

test("money is no math unless somebody wants it", () => {
  const kinds = (source: string, withDollars: boolean) =>
    (lex(source, {}, withDollars)[0] as { tokens: { type: string }[] }).tokens.map(({ type }) => type);
  expect(kinds("it costs $5 and $10", false)).toEqual(["text"]);
  expect(kinds("it costs $5 and $10", true)).toEqual(["text"]);
  expect(kinds("so $x^2$ is", true)).toEqual(["text", "math", "text"]);
  expect(kinds("so $$x^2$$ is", false)).toEqual(["text", "math", "text"]);
  expect(kinds("so \\(x\\) is", false)).toEqual(["text", "math", "text"]);
});

test("W81 texts made to stop the page are shown as they are", () => {
  expect(isBearable("> ".repeat(10_000))).toBe(false);
  expect(isBearable("- ".repeat(10_000))).toBe(false);
  expect(isBearable("a".repeat(1_000_000))).toBe(false);
  expect(isBearable(`${" ".repeat(4000)}- deep`)).toBe(false);
  expect(isBearable(`${"-".repeat(80)}\n> - 1. nested\n${"a b ".repeat(1000)}`)).toBe(true);
  view.update("> ".repeat(10_000), false, context);
  expect(place.children).toHaveLength(1);
});

test("W81 a table of more columns than anybody reads is shown as it was written", () => {
  const wide = (columns: number) =>
    `|${" a |".repeat(columns)}\n|${"-|".repeat(columns)}\n|${" 1 |".repeat(columns)}\n`;
  view.update(wide(100), false, context);
  expect(place.querySelectorAll("th")).toHaveLength(100);
  view.update(wide(101), false, context);
  expect(place.querySelector("table")).toBeNull();
  expect(place.textContent).toContain("a | a | a");
});

test("a long text is cut where both parts mean what they meant", () => {
  const source = "one\n\ntwo\n\n```\ncode\n\nmore\n```\n\nthree\n\n- a\n\n- b\n\nfour";
  expect(source.slice(safeCut(source, 6, 1000))).toBe("```\ncode\n\nmore\n```\n\nthree\n\n- a\n\n- b\n\nfour");
  expect(source.slice(safeCut(source, 12, 1000))).toBe("three\n\n- a\n\n- b\n\nfour");
  expect(source.slice(safeCut(source, 40, 1000))).toBe("four");
});

test("character references mean what they mean, once", () => {
  expect(decodeEntities("&lt;b&gt; &amp;amp; &#65;&#x42; &nope; &#0; &eacute;")).toBe("<b> &amp; AB &nope; \ufffd é");
});
