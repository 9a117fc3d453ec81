// @vitest-environment node
/** Wording of errors. Python has the same cases, so the page and the terminal show the same text. */

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

import { translator } from "@agent-rendering/core/strings";

import { sizeText } from "../src/chat/message/file_chip.js";
import { sentence } from "../src/base/wrong.js";

const CASES = JSON.parse(readFileSync(new URL("../../../schemas/cases/sentences.json", import.meta.url), "utf8")) as [
  string,
  string,
][];

test.each(CASES)("%j is shown as %j", (text, shown) => {
  expect(sentence(text)).toBe(shown);
});

test.each([
  ["en", 0, "0 bytes"],
  ["en", 1, "1 byte"],
  ["en", 78, "78 bytes"],
  ["en", 999, "999 bytes"],
  ["en", 3400, "3.4 kB"],
  ["en", 25_000_000, "25 MB"],
  ["de", 78, "78 Byte"],
  ["fr", 1, "1\u00a0octet"],
  ["fr", 78, "78\u00a0octets"],
  ["ja", 78, "78 バイト"],
])("in the language %s, %d bytes are written as %j", (locale, bytes, shown) => {
  expect(sizeText(bytes, translator(locale)).replace(/\u202f/g, "\u00a0")).toBe(shown);
});
