/** Prose that grows in pieces is drawn, after each piece, like the whole text so far. */

import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createContext } from "../src/base/context.js";
import "../src/components/index.js";
import { ProseBuilder } from "../src/markdown/builder.js";
import { lex, noLinks } from "../src/markdown/lexer.js";
import { ProseView } from "../src/markdown/view.js";

const context = createContext();
/** Fake time, which passes only between two pieces: prose pauses if drawing took long. */
let now = 0;
beforeEach(() => void vi.spyOn(performance, "now").mockImplementation(() => now));
afterEach(() => void vi.restoreAllMocks());

/** Return the elements and texts of a node, without the parts around blocks and without blanks at an end. */
function shown(of: Node): string {
  let out = "";
  for (const child of of.childNodes) {
    if (child instanceof Text) out += child.data;
    else if (child instanceof HTMLElement) out += child.classList.contains("arp-part") ? shown(child) : received(child);
  }
  return out.replace(/\s+(?=<|$)/g, "");
}

function received(element: HTMLElement): string {
  const attributes = [...element.attributes].map(({ name, value }) => ` ${name}=${value}`).sort();
  if (element.localName !== "arp-code") return `<${element.localName}${attributes.join("")}>${shown(element)}</>`;
  const { code, language, unfinished } = element as unknown as { code: string; language: string; unfinished: boolean };
  return `<code ${language} ${unfinished ? "open" : "closed"}>${code}</>`;
}

/** Return a function that gives one text after another to the same view, and returns what is drawn. */
function growing() {
  const place = document.createElement("div");
  const view = new ProseView(place, context);
  return (text: string, isOpen: boolean): string => {
    now += 1000;
    view.update(text, isOpen, context);
    expect(view.busy).toBe(false);
    return shown(place);
  };
}

/** Pieces of Markdown that are valid, or almost valid, in combination. */
const PIECES = [
  "word",
  " ",
  " ",
  "\n",
  "\n\n",
  "two words",
  "Über, naïve; (so)",
  "e.g. this.",
  "你好。",
  "a-b",
  "1",
  "12",
  ". ",
  ") ",
  "- ",
  "* ",
  "+ ",
  "> ",
  "# ",
  "### ",
  "#",
  "    ",
  "  ",
  "```\n",
  "```js\n",
  "````\n",
  "~~~\n",
  "`",
  "``",
  "**",
  "*",
  "_",
  "~~",
  "[",
  "]",
  "](",
  "](https://example.org/a)",
  "[d]",
  "[d]: https://example.org/d\n",
  "[d]: /x 'title",
  "'",
  "!",
  "![",
  "|",
  "| a | b |\n",
  "|---|---|\n",
  "| 1 | **2** |\n",
  "---",
  "===",
  "-",
  "<div",
  "<b>",
  "</b>",
  ">",
  "<",
  "&amp",
  ";",
  "&",
  "\\",
  "$$",
  "$",
  "\\(",
  "www.",
  "www.example.org",
  "http://",
  "x@example.org",
  ":",
  "/",
  "- [ ] ",
  "- [x] done\n",
  "\t",
  "\r\n",
  "def f():\n",
  "    return 1\n",
  "let a = 1;\n",
  "🙂",
  "\u202e",
  "[2]",
];
const texts = fc.array(fc.constantFrom(...PIECES), { minLength: 1, maxLength: 24 }).map((pieces) => pieces.join(""));

/** Positions of cuts, as fractions of the length of the text. */
const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 12 });

function prefixes(text: string, at: readonly number[]): string[] {
  return [...at].sort((one, other) => one - other).map((part) => text.slice(0, Math.round(part * text.length)));
}

test.each([
  ["text\n#", "e.g. this"],
  ["text\n***", "bold***"],
  ["text\n```", "code``` and more"],
  ["text\n$$x$$", " and more"],
  ["- item\n#", "1 goes on"],
])("a line that may still belong to the block above is not drawn as a block: %j, %j", (begin, end) => {
  const show = growing();
  show(begin, true);
  expect(show(begin + end, false)).toBe(growing()(begin + end, false));
});

describe("for any text and any cuts", () => {
  test("each prefix is drawn like the same text at once, and so is the complete text", { timeout: 120_000 }, () => {
    fc.assert(
      fc.property(texts, cuts, (text, at) => {
        const show = growing();
        for (const prefix of prefixes(text, at)) expect(show(prefix, true)).toBe(growing()(prefix, true));
        expect(show(text, false)).toBe(growing()(text, false));
      }),
      { numRuns: Number(process.env.ARP_RUNS ?? 2000) },
    );
  });
});

/** Return lines that are together too long for one slice. */
const lines = (line: (number: number) => string, length: number) =>
  Array.from({ length: Math.ceil(length / line(0).length) }, (_, number) => line(number)).join("");
const WORDS = "as many words as a line of somebody who explains at length has ".repeat(6).trim();
const LONG: { readonly [name: string]: (length: number) => string } = {
  fence: (length) =>
    `\`\`\`js\n${lines((number) => `const a${number} = 1;${number % 7 ? "" : "\n"}\n`, length)}\`\`\`\n`,
  "fence that shows fences": (length) =>
    `~~~~md\n${lines((number) => `Text ${number}\n\n\`\`\`js\nlet b;\n\`\`\`\n`, length)}~~~~\n`,
  table: (length) => `| a | b |\n|---|---|\n${lines((number) => `| ${number} | **two** ${WORDS} |\n`, length)}`,
  math: (length) => `$$\n${lines((number) => `x_${number} = 1\n\n`, length)}$$\n`,
  html: (length) => `<pre>\n${lines((number) => `line ${number}\n\n`, length)}</pre>\n`,
  quote: (length) => lines((number) => `> said ${number} ${WORDS}\n>\n`, length),
  list: (length) => lines((number) => `- item ${number} ${WORDS}\n\n  more ${WORDS}\n\n`, length),
  indented: (length) => lines((number) => `    code ${number}\n\n`, length),
  prose: (length) => lines((number) => `A paragraph ${number} with *words*: ${WORDS}.\n\n`, length),
};
const long = fc
  .tuple(fc.constantFrom(...Object.keys(LONG)), fc.integer({ min: 10, max: 50_000 }))
  .map(([name, length]) => (LONG[name] as (length: number) => string)(length));

function whole(text: string): string {
  const place = document.createElement("div");
  place.append(...new ProseBuilder(context).blocks(lex(text, noLinks())));
  return shown(place);
}

test.each(Object.keys(LONG))(
  "a block of more than 32,000 characters stays one block, and the text after it is separate: %s",
  (name) => {
    const text = `Before.\n\n${(LONG[name] as (length: number) => string)(40_000)}\nAfter *it*.\n\n- one\n\nEnd.`;
    expect(growing()(text, false)).toBe(whole(text));
  },
);

test("a long text has the same blocks in slices as at once, for any content and any cuts", { timeout: 120_000 }, () => {
  fc.assert(
    fc.property(fc.array(long, { minLength: 1, maxLength: 3 }), cuts, (blocks, at) => {
      const text = blocks.join("\n\n");
      const show = growing();
      for (const prefix of prefixes(text, at.slice(0, 3))) show(prefix, true);
      expect(show(text, false)).toBe(whole(text));
    }),
    { numRuns: 12 },
  );
});
