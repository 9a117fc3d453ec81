/** Actions that are offered to users, depending on the capabilities of the agent side. */

import { expect, test } from "vitest";
import { offered } from "../src/index.js";

const ALL = { input: true, turns: true, files: true };

test.each([
  ["nothing is known yet", null, ALL],
  ["a server of ARP 1", { components: [], features: ["input", "resume", "file-upload"] }, ALL],
  ["a recording", { components: [], features: ["resume"] }, { input: false, turns: true, files: false }],
  ["a server of the draft", { components: [], features: ["streaming"] }, { input: true, turns: false, files: false }],
  ["one that takes files", { components: [], features: ["file-upload"] }, { input: true, turns: false, files: true }],
  ["one without a hello", { components: [] }, { input: true, turns: false, files: false }],
])("%s", (_, capabilities, expected) => {
  expect(offered(capabilities)).toEqual(expected);
});
