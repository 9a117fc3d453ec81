/** W66: keyboard focus on messages. */

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

test("W66 upward from the message box, the focus moves from the newest message to the first, and stays there", () => {
  box.focus();
  expect([walk(chat, -1), focused()]).toEqual([true, "three"]);
  expect([walk(chat, -1), focused()]).toEqual([true, "two"]);
  expect([walk(chat, -1), focused()]).toEqual([true, "one"]);
  expect([walk(chat, -1), focused()]).toEqual([true, "one"]);
});

test("W66 downward after the newest message, the focus belongs in the message box", () => {
  articles[1]?.querySelector("button")?.focus();
  expect([walk(chat, 1), focused()]).toEqual([true, "three"]);
  expect(walk(chat, 1)).toBe(false);
  box.focus();
  expect(walk(chat, 1)).toBe(false);
});

test("W66 from an element inside a message, the focus moves to the next or previous message", () => {
  articles[2]?.querySelector("button")?.focus();
  expect([walk(chat, -1), focused()]).toEqual([true, "two"]);
});

test("W66 a message can be focused with the shortcuts but not with Tab", () => {
  walk(chat, -1);
  expect(articles.map((article) => article.getAttribute("tabindex"))).toEqual([null, null, "-1"]);
});

test("W66 without messages nothing takes the focus", () => {
  articles.forEach((article) => article.remove());
  box.focus();
  expect([walk(chat, -1), focused()]).toEqual([true, "textarea"]);
});
