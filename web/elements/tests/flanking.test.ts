// @vitest-environment node
/** Emphasis in scripts without blanks between words: the same cases as in the terminal. */

import { readFileSync } from "node:fs";
import type { Token, Tokens } from "marked";
import { expect, test } from "vitest";

import { lex, noLinks } from "../src/markdown/lexer.js";

const CASES = JSON.parse(readFileSync(new URL("../../../schemas/cases/emphasis.json", import.meta.url), "utf8")) as [
  string,
  string,
  string,
][];
const SIGNS: { readonly [type: string]: string } = { strong: "b", em: "i", del: "s" };

function marked(tokens: readonly Token[] = []): string {
  return tokens
    .map((token) => {
      const { type, tokens: inner, text } = token as Tokens.Generic;
      if (type === "codespan") return `\`${text as string}\``;
      const sign = SIGNS[type];
      const shown = inner ? marked(inner) : (text as string);
      return sign ? `<${sign}>${shown}</${sign}>` : shown;
    })
    .join("");
}

test.each(CASES)("%s", (_name, source, shown) => {
  expect(marked(lex(source, noLinks()))).toBe(shown);
});

test("a long run of marks in such scripts is parsed in time", () => {
  const began = performance.now();
  for (const sign of ["*", "**「", "」**", "~~。", "中*", '*"中']) lex(sign.repeat(3000), noLinks());
  expect(performance.now() - began).toBeLessThan(10_000);
});
