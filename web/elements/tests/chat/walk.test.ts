/** W66: from message to message by keys. */

import { beforeEach, expect, test } from "vitest";
import { walk } from "../../src/chat/timeline/walk.js";

let chat: HTMLElement;
let articles: HTMLElement[];
let box: HTMLTextAreaElement;

beforeEach(() => {
  document.body.replaceChildren();
  chat = document.createElement("div");
  const log = Object.assign(document.createElement("div"), { className: "arp-log" });
  articles = ["one", "two", "three"].map((name) => {
    const article = Object.assign(document.createElement("article"), { id: name });
    article.append(Object.assign(document.createElement("button"), { textContent: name }));
    return article;
  });
  log.append(...articles);
  box = document.createElement("textarea");
  chat.append(log, box);
  document.body.append(chat);
});

const focused = () => document.activeElement?.id || document.activeElement?.localName;

test("W66 from the message box upward it is the newest first, then each before it, and it stays at the first", () => {
  box.focus();
  expect([walk(chat, -1), focused()]).toEqual([true, "three"]);
  expect([walk(chat, -1), focused()]).toEqual([true, "two"]);
  expect([walk(chat, -1), focused()]).toEqual([true, "one"]);
  expect([walk(chat, -1), focused()]).toEqual([true, "one"]);
});

test("W66 downward after the newest there is no place: the focus is the message box's", () => {
  articles[1]?.querySelector("button")?.focus();
  expect([walk(chat, 1), focused()]).toEqual([true, "three"]);
  expect(walk(chat, 1)).toBe(false);
  box.focus();
  expect(walk(chat, 1)).toBe(false);
});

test("W66 from something inside of a message it goes from that message", () => {
  articles[2]?.querySelector("button")?.focus();
  expect([walk(chat, -1), focused()]).toEqual([true, "two"]);
});

test("W66 a message is focused by keys and not reached by Tab", () => {
  walk(chat, -1);
  expect(articles.map((article) => article.getAttribute("tabindex"))).toEqual([null, null, "-1"]);
});

test("W66 without messages nothing takes the focus", () => {
  articles.forEach((article) => article.remove());
  box.focus();
  expect([walk(chat, -1), focused()]).toEqual([true, "textarea"]);
});
