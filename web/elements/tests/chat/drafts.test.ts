/** W27: drafts by server and session. */

import { expect, test } from "vitest";
import { browserStorage, Drafts } from "../../src/chat/composer/drafts.js";

/** Return a storage whose content can be read. */
function storage(): {
  kept: Map<string, string>;
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
} {
  const kept = new Map<string, string>();
  return {
    kept,
    getItem: (key) => kept.get(key) ?? null,
    setItem: (key, value) => void kept.set(key, value),
    removeItem: (key) => void kept.delete(key),
  };
}

test("W27 each session of each server has its own draft, and so has a chat without an id", () => {
  const shared = storage();
  const here = new Drafts(shared, "https://one.example/");
  const there = new Drafts(shared, "https://two.example/");
  here.write("a", "of a");
  here.write("b", "of b");
  here.write(null, "of a new one");
  expect([here.read("a"), here.read("b"), here.read(null), here.read("c")]).toEqual([
    "of a",
    "of b",
    "of a new one",
    "",
  ]);
  expect([there.read("a"), there.read(null)]).toEqual(["", ""]);
  expect(new Drafts(shared, "https://one.example/").read("a")).toBe("of a");
});

test("W27 an empty draft is removed from the storage", () => {
  const shared = storage();
  const drafts = new Drafts(shared, "");
  drafts.write("a", "some");
  drafts.write("a", "");
  expect([drafts.read("a"), shared.kept.size]).toEqual(["", 0]);
});

test("W27 the draft of a chat without an id moves to the id that the chat gets", () => {
  const shared = storage();
  const drafts = new Drafts(shared, "");
  drafts.write(null, "begun");
  drafts.name("a");
  expect([drafts.read("a"), drafts.read(null), shared.kept.size]).toEqual(["begun", "", 1]);
});

test("W27 two tabs on one session have their own drafts; a new tab begins with the last one written", () => {
  const shared = storage();
  const [one, other] = [new Drafts(shared, ""), new Drafts(shared, "")];
  one.write("a", "of one");
  other.write("a", "of the other");
  expect([one.read("a"), other.read("a"), new Drafts(shared, "").read("a")]).toEqual([
    "of one",
    "of the other",
    "of the other",
  ]);
});

test("W27 drafts work with a storage that is full, forbidden or absent", () => {
  const refusing = {
    getItem: (): string | null => {
      throw new DOMException("no", "SecurityError");
    },
    setItem: (): void => {
      throw new DOMException("full", "QuotaExceededError");
    },
    removeItem: (): void => {
      throw new DOMException("no", "SecurityError");
    },
  };
  for (const drafts of [new Drafts(refusing, ""), new Drafts(null, "")]) {
    drafts.write("a", "text");
    expect(drafts.read("a")).toBe("text"); // until the reload
    expect(new Drafts(refusing, "").read("a")).toBe("");
    drafts.write("a", "");
    expect(drafts.read("a")).toBe("");
  }
});

test("a forbidden storage counts as no storage", () => {
  const before = Object.getOwnPropertyDescriptor(globalThis, "localStorage");
  Object.defineProperty(globalThis, "localStorage", {
    configurable: true,
    get: () => {
      throw new DOMException("no", "SecurityError");
    },
  });
  try {
    expect(browserStorage()).toBeNull();
  } finally {
    if (before) Object.defineProperty(globalThis, "localStorage", before);
    else delete (globalThis as { localStorage?: unknown }).localStorage;
  }
});
