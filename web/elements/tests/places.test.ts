/** Places that a framework fills, and their life cycle. */

import { createComponentRegistry, type Component } from "@agent-rendering/core";
import { afterEach, expect, test } from "vitest";
import { createContext, type ArpComponentElement } from "../src/components/index.js";
import { Places, type Place } from "../src/places.js";

const map = (id: string, city = "Ulm"): Component => ({ id, type: "x-acme-map", props: { city } });
const cities = (places: Places) => places.places.get().map(({ component }) => component.props.city);

/** Draw a component in the document. */
async function drawn(places: Places, component: Component): Promise<ArpComponentElement> {
  const registry = places.factories(createComponentRegistry({ "x-acme-map": true }));
  const element = document.createElement("arp-component") as ArpComponentElement;
  element.context = createContext({ registry });
  element.component = component;
  document.body.append(element);
  await waitUntilDrawn(element);
  return element;
}

async function waitUntilDrawn(element: ArpComponentElement): Promise<void> {
  await element.updateComplete;
  for (const inner of element.querySelectorAll<ArpComponentElement>("arp-own")) await inner.updateComplete;
  await Promise.resolve();
}

afterEach(() => document.body.replaceChildren());

test("a component that the framework draws gets a node in the document", async () => {
  const places = new Places();
  expect(places.places.get()).toEqual([]);
  const element = await drawn(places, map("a"));
  const [place] = places.places.get() as [Place];
  expect([places.places.get().length, place.component.id, element.contains(place.node)]).toEqual([1, "a", true]);
});

test("a changed component keeps its node and key", async () => {
  const places = new Places();
  const element = await drawn(places, map("a"));
  const [before] = places.places.get() as [Place];
  let received = 0;
  places.places.subscribe(() => (received += 1));
  element.component = map("a", "Bonn");
  await waitUntilDrawn(element);
  const [after] = places.places.get() as [Place];
  expect([after.node === before.node, after.key === before.key, after === before]).toEqual([true, true, false]);
  expect([cities(places), received]).toEqual([["Bonn"], 1]);
});

test("another component in the same element gets another node", async () => {
  const places = new Places();
  const element = await drawn(places, map("a"));
  const [before] = places.places.get() as [Place];
  element.component = map("b");
  await waitUntilDrawn(element);
  const [after, ...rest] = places.places.get() as [Place];
  expect([after.node === before.node, after.component.id, rest.length]).toEqual([false, "b", 0]);
});

test("the same id in two elements has two nodes", async () => {
  const places = new Places();
  await drawn(places, map("a", "Ulm"));
  await drawn(places, map("a", "Bonn"));
  expect(cities(places)).toEqual(["Ulm", "Bonn"]);
});

test("a place that leaves the document is reported after it has left; a place that is moved stays", async () => {
  const places = new Places();
  const element = await drawn(places, map("a"));
  const [before] = places.places.get();
  const elsewhere = document.createElement("div");
  document.body.append(elsewhere);
  elsewhere.append(element);
  await waitUntilDrawn(element);
  expect(places.places.get()[0]?.node).toBe(before?.node);
  element.remove();
  await waitUntilDrawn(element);
  expect(places.places.get()).toEqual([]);
  document.body.append(element);
  await waitUntilDrawn(element);
  expect(places.places.get()[0]?.node).toBe(before?.node);
});

test("types that the framework does not draw are drawn by the elements", async () => {
  const places = new Places();
  const registry = places.factories(createComponentRegistry({ "x-acme-map": true }));
  expect([registry.has("x-acme-map"), registry.has("table"), registry.get("table")]).toEqual([true, false, undefined]);
  expect(registry.list()).toEqual(["x-acme-map"]);
  expect(() => registry.register("table", () => document.createElement("p"))).toThrow(/to the chat/);
});
