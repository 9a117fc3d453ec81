// @vitest-environment node
/** The output of programs, with the cases of Python, so that page and terminal show the same. */

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

import { printed } from "../src/printed.js";

const CASES = JSON.parse(
  readFileSync(new URL("../../../schemas/cases/program_output.json", import.meta.url), "utf8"),
) as [string, string, string][];

test.each(CASES)("%s", (_name, text, shown) => {
  expect(printed(text)).toBe(shown);
  expect(printed(shown)).toBe(shown);
});

test.each([
  "\x1b]".repeat(100_000),
  "\x1bP\x1b".repeat(100_000),
  "x".repeat(300_000) + "\x1b[1K".repeat(30_000),
  ("x".repeat(900) + "\x1b[1K\x1b[2Ky").repeat(300),
  `\x1b[${"1".repeat(300_000)}`,
  "\n".repeat(50_000) + "\x1b[A\x1b[J\n".repeat(50_000),
  "a\r".repeat(150_000),
])("hostile output costs no more than its length (%#)", (text) => {
  const began = performance.now();
  expect(printed(text)).not.toMatch(/[\x1b\r]/);
  expect(performance.now() - began).toBeLessThan(5000);
});
