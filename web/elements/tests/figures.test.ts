/** Numbers of a table, durations, long texts and tokens, in formats for readers. */

import { translator } from "@agent-rendering/core/strings";
import { expect, test } from "vitest";
import { clockText } from "../src/chat/clock.js";
import { isLong } from "../src/chat/message/fold.js";
import { tokenIn } from "../src/chat/status/token_form.js";
import { decimalsOf, withoutNoise, written } from "../src/components/table/figures.js";

const shown = (...values: (string | number | null)[]) => {
  const rows = values.map((value) => [value]);
  return values.map((value) => written(value, decimalsOf(rows, 0)));
};

test("W41 all numbers of a column have as many decimals as the longest one", () => {
  expect(shown(12.33, 4, -0.5)).toEqual(["12.33", "4.00", "-0.50"]);
  expect(shown(52.520008, 13.4)).toEqual(["52.520008", "13.400000"]);
  expect(shown(1, 2, null)).toEqual(["1", "2", ""]);
  expect(shown("7", 1.5, 3)).toEqual(["7", "1.5", "3.0"]);
  expect(shown(1e21, 2.5, 3)).toEqual(["1e+21", "2.5", "3"]);
});

test("W41 rounding errors are not shown, and computed numbers of a column are rounded alike", () => {
  expect(shown(12.330000000000002, 0.1 + 0.2)).toEqual(["12.33", "0.30"]);
  expect(shown(1 / 3, 100, 0)).toEqual(["0.3333", "100.0000", "0.0000"]);
  expect(shown(200 / 3, 12)).toEqual(["66.67", "12.00"]);
  expect(shown(1e-9 / 3, 2.5)).toEqual(["3.33333333333333e-10", "2.5"]);
  expect(shown(0.0001234567, 2.5)).toEqual(["0.0001234567", "2.5"]);
  expect([withoutNoise(1e21), withoutNoise(-7), withoutNoise(1.005)]).toEqual([1e21, -7, 1.005]);
});

test.each([
  [0, "0:00"],
  [9.9, "0:09"],
  [299, "4:59"],
  [3600, "1:00:00"],
  [90_061, "25:01:01"],
  [-3, "0:00"],
  [172_800, "2 days"],
  [600_000, "6 days"],
])("%d seconds are written as %s", (seconds, expected) => {
  expect(clockText(seconds, translator("en"))).toBe(expected);
});

test("a clock has the digits of the language", () => {
  expect(clockText(299, translator("ar-EG"))).toBe("٤:٥٩");
});

test.each([
  ["  abc ", "abc"],
  ["http://h:1/#token=a%2Bb%25", "a+b%"],
  ["http://h:1/?session=s#token=x&session=y", "x"],
  ["my-token=5", "my-token=5"],
  ["http://h:1/#token=", ""],
])("the token in %j is %j", (text, token) => {
  expect(tokenIn(text)).toBe(token);
});

test("a text of 25 lines or of more than 4,000 characters is folded", () => {
  expect([
    isLong("a\n".repeat(23)),
    isLong("a\n".repeat(24)),
    isLong("a".repeat(4000)),
    isLong("a".repeat(4001)),
  ]).toEqual([false, true, false, true]);
});
