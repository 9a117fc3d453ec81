/** The end of a long conversation is drawn first, and a turn that was drawn stays drawn. */

import { expect, test, vi } from "vitest";

import { Recent } from "../../src/chat/timeline/recent.js";

const named = (count: number) => Array.from({ length: count }, (_, at) => `t${at + 1}`);

test("the last turns are drawn first, and the others in order when the browser is idle", async () => {
  const ids = named(50);
  const seen: (readonly string[])[] = [];
  const recent = new Recent(() => {
    recent.step(ids);
    seen.push(recent.of(ids));
  });
  const first = recent.of(ids);
  expect(first.at(-1)).toBe("t50");
  expect(first.length).toBeLessThan(20);
  expect(recent.isPartial).toBe(true);
  await vi.waitFor(() => expect(recent.isPartial).toBe(false));
  for (const [at, drawn] of [first, ...seen].entries()) {
    expect(drawn).toEqual(ids.slice(-drawn.length));
    if (at > 0) expect(drawn.length).toBeGreaterThan([first, ...seen][at - 1]?.length ?? 0);
  }
  expect(seen.at(-1)).toEqual(ids);
});

test("a short conversation is drawn at once", () => {
  const recent = new Recent(() => expect.unreachable());
  const ids = named(3);
  expect(recent.of(ids)).toBe(ids);
  expect(recent.isPartial).toBe(false);
});

test("new turns do not remove drawn turns while older ones are not drawn yet", () => {
  const recent = new Recent(() => undefined);
  const before = recent.of(named(50));
  const after = recent.of(named(60));
  expect(after.slice(0, before.length)).toEqual(before);
  expect(after.at(-1)).toBe("t60");
});

test("a conversation that grows turn by turn keeps its first turn", () => {
  const recent = new Recent(() => expect.unreachable());
  for (let count = 1; count <= 100; count += 1) expect(recent.of(named(count))).toHaveLength(count);
});

test("all turns can be drawn at once, to print them", () => {
  const recent = new Recent(() => undefined);
  const ids = named(500);
  recent.of(ids);
  recent.step(ids, Infinity);
  expect(recent.of(ids)).toEqual(ids);
});

test("another conversation begins at its end, whatever was drawn of the previous one", () => {
  const recent = new Recent(() => undefined);
  const ids = named(40);
  recent.of(ids);
  recent.step(ids, Infinity);
  recent.clear();
  const other = Array.from({ length: 40 }, (_, at) => `u${at}`);
  expect(recent.of(other).length).toBeLessThan(20);
  expect(recent.of(other).at(-1)).toBe("u39");
});
