/** Subscriptions of elements that enter, leave and move within the document. */

import { LitElement } from "lit";
import { afterEach, expect, test, vi } from "vitest";
import { CellController, type Observable } from "../src/base/cell_controller.js";

class Watcher extends LitElement {
  readonly changed = vi.fn();
  readonly cells = new CellController(this, this.changed);
}
customElements.define("test-watcher", Watcher);

class Source implements Observable {
  readonly listeners = new Set<() => void>();
  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }
}

afterEach(() => document.body.replaceChildren());

test("there is one subscription while the element is in the document, however often it is requested", () => {
  const [element, source] = [new Watcher(), new Source()];
  element.cells.observe(source);
  expect(source.listeners.size).toBe(0);
  document.body.append(element);
  element.cells.observe(source);
  expect(source.listeners.size).toBe(1);
  element.remove();
  expect(source.listeners.size).toBe(0);
});

test("after a move the element is subscribed again, and reads changes that it may have missed", () => {
  const [element, source, section] = [new Watcher(), new Source(), document.createElement("section")];
  document.body.append(element, section);
  element.cells.observe(source);
  expect(element.changed).not.toHaveBeenCalled();
  section.append(element);
  expect([source.listeners.size, element.changed.mock.calls.length]).toEqual([1, 1]);
  for (const listener of source.listeners) listener();
  expect(element.changed).toHaveBeenCalledTimes(2);
});

test("new cells replace the previous ones, and so does an empty list", () => {
  const [element, one, other] = [new Watcher(), new Source(), new Source()];
  document.body.append(element);
  element.cells.observe(one);
  element.cells.observe(other);
  expect([one.listeners.size, other.listeners.size]).toEqual([0, 1]);
  element.cells.observe();
  expect(other.listeners.size).toBe(0);
});
