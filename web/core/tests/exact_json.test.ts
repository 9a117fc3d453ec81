import { describe, expect, test } from "vitest";

import { parseJson } from "../src/protocol/exact_json.js";
import { readFrame } from "../src/protocol/shape.js";

describe("parseJson", () => {
  test.each([
    ["9007199254740991", 9007199254740991],
    ["9007199254740993", "9007199254740993"],
    ["-9223372036854775808", "-9223372036854775808"],
    [
      '[9007199254740992, 1, "9007199254740993", 9007199254740993.5]',
      ["9007199254740992", 1, "9007199254740993", 9007199254740993.5],
    ],
    ['{"9007199254740993": "\\" 9007199254740993 \\\\"}', { "9007199254740993": '" 9007199254740993 \\' }],
    ["0.1234567890123456789", 0.1234567890123456789],
    ["1e300", 1e300],
  ])("reads %s without rounding a whole number", (json, read) => {
    expect(parseJson(json)).toEqual(read);
  });

  test.each(["01234567890123456789", "9007199254740993x", "-", '{"a": 9007199254740993', '"9007199254740993'])(
    "refuses %s as JSON.parse does",
    (json) => {
      expect(() => parseJson(json)).toThrow(SyntaxError);
    },
  );

  test("a long text of one string is read in linear time", () => {
    const json = JSON.stringify({ a: `${'\\" 1'.repeat(200_000)}9007199254740993`, b: 1 });
    expect(parseJson(json)).toEqual(JSON.parse(json));
  });
});

test("a large number in a state is exact, also from a server that sends it as a number", () => {
  const { messages } = readFrame('{"type":"state","v":1,"session_id":"s","state":{"id":9223372036854775807}}');
  expect(messages).toMatchObject([{ state: { id: "9223372036854775807" } }]);
});
