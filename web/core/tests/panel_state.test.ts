/** A side panel that was closed stays closed until something new comes. */

import { expect, test } from "vitest";
import type { Component, Storage } from "../src/index.js";
import { PanelState, type PanelContent } from "../src/surfaces.js";

const text = (id: string, content = ""): Component => ({ id, type: "text", props: { content } });
const confirm = (id: string, state: string): Component => ({ id, type: "confirm", props: { title: "Go?", state } });

function content(sessionId: string | null, ...components: Component[]): PanelContent {
  return { sessionId, surfaces: components.length === 0 ? [] : [{ name: "side", info: undefined, components }] };
}

function storage(): Storage & { readonly kept: Map<string, string> } {
  const kept = new Map<string, string>();
  return {
    kept,
    getItem: (key) => kept.get(key) ?? null,
    setItem: (key, value) => void kept.set(key, value),
    removeItem: (key) => void kept.delete(key),
  };
}

test("a change leaves a closed panel closed, a new component opens it", () => {
  const panel = new PanelState();
  panel.update(content("s", text("a")));
  panel.close();
  panel.update(content("s", text("a", "changed")));
  expect([panel.isClosed, panel.hasNews]).toEqual([true, false]);
  panel.update(content("s", text("a"), text("b")));
  expect([panel.isClosed, panel.hasNews]).toEqual([false, true]);
  panel.see();
  expect(panel.hasNews).toBe(false);
});

test("a question opens a closed panel, and asks until it is answered", () => {
  const panel = new PanelState();
  panel.update(content("s", confirm("q", "answered")));
  panel.close();
  expect([panel.isClosed, panel.asks]).toEqual([true, false]);
  panel.update(content("s", confirm("q", "open")));
  expect([panel.isClosed, panel.asks]).toEqual([false, true]);
});

test("after a reload the panel of the same session is closed, with what had been seen", () => {
  const kept = storage();
  const before = new PanelState(() => kept);
  before.update(content("s", text("a")));
  before.close();
  const after = new PanelState(() => kept);
  expect([after.update(content("s", text("a"))), after.isClosed]).toEqual([true, true]);
  after.update(content("s", text("a"), text("b")));
  expect([after.isClosed, kept.kept.size]).toEqual([false, 0]);
});

test("the panel of another session is open, whatever the one before was", () => {
  const kept = storage();
  const panel = new PanelState(() => kept);
  panel.update(content("s", text("a")));
  panel.close();
  expect([panel.update(content("other", text("a"))), panel.isClosed, panel.hasNews]).toEqual([true, false, true]);
});

test("a session that gets its id is the same one", () => {
  const panel = new PanelState();
  panel.update(content(null, text("a")));
  panel.close();
  expect([panel.update(content("s", text("a"))), panel.isClosed]).toEqual([false, true]);
});

test("a storage that is forbidden, full or not ours keeps nothing", () => {
  const forbidden = new PanelState(() => {
    throw new Error("forbidden");
  });
  forbidden.update(content("s", text("a")));
  forbidden.close();
  expect(forbidden.isClosed).toBe(true);
  const foreign = storage();
  foreign.kept.set("arp.side-closed", "{");
  const panel = new PanelState(() => foreign);
  panel.update(content("s", text("a")));
  expect(panel.isClosed).toBe(false);
});
