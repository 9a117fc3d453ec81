/** An input that a person changes: what is read is what was written, or nothing. */

import { expect, test } from "vitest";
import { readInput, textOf } from "../src/permissions.js";

test.each([
  ["{}", {}],
  [' {"a": [1, 2.5, null], "b": {"a": "x"}} ', { a: [1, 2.5, null], b: { a: "x" } }],
  ['{"n": 9007199254740991}', { n: 9007199254740991 }],
])("W51 %s is read", (text, value) => {
  expect(readInput(text)).toEqual(value);
});

test.each([
  "",
  "ls",
  "[1]",
  "null",
  '"x"',
  '{"a": 1,}',
  '{"a": 1, "a": 2}',
  '{"n": 9007199254740993}',
  '{"n": -123456789012345678}',
  '{"n": [1e999]}',
])("%s is not read: another input would be sent than the one that was written", (text) => {
  expect(readInput(text)).toBeNull();
});

test("the text to begin with is laid out, and means the same", () => {
  const text = textOf('{"a":"x\u202ey\u{e0041}","b":[1]}');
  expect(text).toContain("\n  ");
  expect(text).toContain("x\\u202ey\\udb40\\udc41");
  expect(readInput(text)).toEqual({ a: "x\u202ey\u{e0041}", b: [1] });
});

test("a long number stays as it was written", () => {
  expect(textOf('{"n":12345678901234567890}')).toBe('{"n":12345678901234567890}');
});
