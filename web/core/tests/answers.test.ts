import { expect, test } from "vitest";
import { answerOfValue } from "../src/protocol/answers.js";
import { isGreeting, questionState, type TurnState } from "../src/index.js";

const dial = (props: object = {}) => ({ id: "q", type: "x-acme-dial", props: props as never });

test("a custom component is a question if the agent side has set its state, and any JSON answers it", () => {
  expect(questionState(dial())).toBe(null);
  expect(questionState(dial({ state: "ajar" }))).toBe(null);
  for (const state of ["open", "answered", "declined"]) expect(questionState(dial({ state }))).toBe(state);
  for (const value of [{ angle: 3 }, 7, null, ["a"]])
    expect(answerOfValue(dial({ state: "open" }), value)).toEqual(["action", { action: "answer", payload: value }]);
});

test("a component that is not a question stays none, whatever its state", () => {
  const card = { id: "c", type: "status-card", props: { state: "open" } };
  expect(questionState(card)).toBe(null);
  expect(() => answerOfValue(card, 1)).toThrow("asks nothing");
});

test("a greeting is a turn without an input of the user", () => {
  const turn = (...origins: (string | null)[]) =>
    ({ inputs: origins.map((origin) => ({ origin })) }) as unknown as TurnState;
  expect(
    [undefined, turn(), turn("session start"), turn(null), turn("timer"), turn("session start", null)].map(isGreeting),
  ).toEqual([false, false, true, false, false, false]);
});
