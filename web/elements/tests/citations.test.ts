/** Citation marks in an agent's text, and their sources. */

import type { Component, Json } from "@agent-rendering/core";
import { SOURCES } from "@agent-rendering/core/chat";
import { expect, test } from "vitest";
import { Citations, sourcesOf } from "../src/base/citations.js";
import "../src/components/sources.js";
import { createContext } from "../src/base/context.js";
import { ProseView } from "../src/markdown/view.js";
import { component, drawn, noting, ready, words } from "./context.js";

function listed(...sources: Json[]): Component {
  return component(SOURCES, { sources });
}

test("W37 a mark becomes a link when its source arrives, and its block keeps its node", async () => {
  const citations = new Citations();
  const place = document.createElement("div");
  document.body.append(place);
  const view = new ProseView(place, createContext({ citations }));
  view.update(
    "One [1][2], `code [1]`, [link [1]](https://example.org/a), [0], [1234] and [x].\n\nMore [3]",
    true,
    createContext({ citations }),
  );
  await ready(place);
  const marks = () =>
    [...place.querySelectorAll("arp-cite")].map((mark) => [mark.textContent, mark.querySelector("a") !== null]);
  expect(marks()).toEqual([
    ["[1]", false],
    ["[2]", false],
    ["[3]", false],
  ]);
  const [paragraph] = place.children;
  const before = words(place);
  expect(citations.look([component("text", {}), listed({ title: "A" }, "B")])).toBe(true);
  await ready(place);
  expect(marks()).toEqual([
    ["[1]", true],
    ["[2]", true],
    ["[3]", false],
  ]);
  expect([words(place), place.children[0] === paragraph]).toEqual([before, true]);
  expect(citations.look([])).toBe(false);
  await ready(place);
  expect(marks().map(([, isLink]) => isLink)).toEqual([false, false, false]);
  place.remove();
});

test("W37 the list has the numbers of the marks, whatever its content", async () => {
  expect(sourcesOf({ sources: [{ title: "A", url: "https://a.example" }, null, "C", { excerpt: 4 }] })).toEqual([
    { title: "A", url: "https://a.example", excerpt: "" },
    { title: "", url: "", excerpt: "" },
    { title: "C", url: "", excerpt: "" },
    { title: "", url: "", excerpt: "4" },
  ]);
  for (const sources of [null, "x", {}, 7]) expect(sourcesOf({ sources: sources as Json })).toEqual([]);
  const place = await drawn(
    listed({ title: "A", url: "https://a.example/x" }, { title: "B", url: "javascript:alert(1)" }),
    noting().context,
  );
  expect([...place.querySelectorAll("li")].map(words)).toEqual(["A (a.example)", "B"]);
  expect([...place.querySelectorAll("a")].map((link) => [link.getAttribute("href"), link.rel])).toEqual([
    ["https://a.example/x", "noopener noreferrer nofollow"],
  ]);
});
