// @vitest-environment node
/** Short messages of programs, without the code that reads long output. */

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

import { withoutCodes } from "../src/base/values.js";

const CASES = JSON.parse(
  readFileSync(new URL("../../../schemas/cases/program_output.json", import.meta.url), "utf8"),
) as [string, string, string][];

test("a message is shown like long output, except for moves of the cursor", () => {
  const same = CASES.filter(([, text]) => !/(?:\x1b\[|\x9b)[\d;]*[A-GJK`]|[\b]/.test(text));
  expect(same.length).toBeGreaterThan(15);
  for (const [, text, shown] of same) expect(withoutCodes(text)).toBe(shown);
});
