/** Unfinished Markdown while it is being written. */

import { describe, expect, test } from "vitest";
import { complete } from "../src/markdown/complete.js";

describe("W19 no raw marks appear while a text is written", () => {
  test.each([
    ["a **bol", "a **bol**"],
    ["a **bold*", "a **bold**"],
    ["a **bold**", "a **bold**"],
    ["a **", "a "],
    ["a *it", "a *it*"],
    ["***both", "***both***"],
    ["snake_case_name", "snake_case_name"],
    ["_it and **bo", "_it and **bo**_"],
    ["2 * 3", "2 * 3"],
    ["a ~~gone", "a ~~gone~~"],
    ["run `npm te", "run `npm te`"],
    ["run `", "run "],
    ["run ``a`b", "run ``a`b``"],
    ["see [the docs](https://exa", "see the docs"],
    ["see [the **do", "see the **do**"],
    ["see [the docs](https://example.org)", "see [the docs](https://example.org)"],
    ["look ![a map](https://exa", "look "],
    ["text\n\n## ", "text\n\n"],
    ["- one\n- ", "- one\n"],
    ["1. one\n2.", "1. one\n"],
    ["- [", ""],
    ["text\n--", "text\n"],
    ["text\n``", "text\n"],
    ["| City | Peo", "| City | Peo |\n| --- | --- |"],
    ["| City | People |\n| --", "| City | People |\n| --- | --- |"],
    ["| City |\n| --- |\n| **Os", "| City |\n| --- |\n| **Os**"],
    ["mean $$\\frac{1", "mean "],
    ["ends with \\", "ends with "],
    ["- a **b\n- c", "- a **b\n- c"],
  ])("%j is drawn as %j", (source, shown) => {
    expect(complete(source)).toBe(shown);
  });

  test("code is unchanged, except for a closing fence that is being written", () => {
    expect(complete("```js\nconst a = **b")).toBe("```js\nconst a = **b");
    expect(complete("```js\nx\n``")).toBe("```js\nx\n");
  });
});
