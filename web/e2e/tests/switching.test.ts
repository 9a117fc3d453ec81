/** Switching to another or a new chat, without a flash and without an alert, if possible on the same connection. */

import type { BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";

import { ask, box, online, say, watched, type Faults } from "../src/host.js";
import { SlowProxy } from "../src/slow_proxy.js";
import { browser, server, useServer } from "../src/stage.js";

useServer();

/** Delay in each direction, in ms: 300 ms for both. */
const DELAY_MS = 150;
let proxy: SlowProxy;
let context: BrowserContext;
let page: Page;
let faults: Faults;
/** Number of WebSockets that the page opened. */
let sockets: number;

beforeAll(async () => {
  proxy = new SlowProxy(server.url, 0);
  await proxy.start();
});
afterAll(() => proxy.stop());
afterEach(async () => {
  proxy.delay = 0;
  await context.close();
  expect(faults.lines).toEqual([]);
});

interface Watching {
  seen: string[];
  stop(): void;
}

/** Record wrong states and announcements during a switch, at every change of the page and in every frame. */
async function watch(): Promise<void> {
  await page.evaluate(() => {
    const seen = new Set<string>();
    const all = (name: string) => [...document.querySelectorAll(name)];
    const spoken = () =>
      all("arp-chat :is(.arp-status, .arp-urgent, [role=alert])").map(({ textContent }) => textContent ?? "");
    const before = new Set(spoken());
    const look = () => {
      for (const text of spoken()) if (text !== "" && !before.has(text)) seen.add(`spoken: ${text}`);
      for (const link of all(".page-link"))
        if ((link as HTMLElement).dataset.phase !== "online") seen.add(`link: ${link.textContent}`);
      for (const banner of all(".arp-banner")) seen.add(`banner: ${banner.textContent}`);
      if (all("arp-chat .arp-skeleton").length > 0) seen.add("skeleton");
      if (all("arp-chat :is(arp-message, .arp-welcome, .arp-skeleton)").length === 0) seen.add("empty");
      if (all("arp-chat arp-message").length > 0 && all(".arp-welcome").length > 0) seen.add("both");
    };
    const observer = new MutationObserver(look);
    observer.observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
    let frame = requestAnimationFrame(function again() {
      look();
      frame = requestAnimationFrame(again);
    });
    const stop = () => {
      observer.disconnect();
      cancelAnimationFrame(frame);
    };
    (globalThis as unknown as { watching: Watching }).watching = {
      get seen() {
        return [...seen];
      },
      stop,
    };
  });
}

const seen = () => page.evaluate(() => (globalThis as unknown as { watching: Watching }).watching.seen);

const row = (title: string) => page.locator(".arp-session", { hasText: title }).locator("a");
const newChat = () => page.locator(".page-side .page-new");
const bubbles = () => page.locator("arp-chat .arp-bubble").allInnerTexts();
const sessionInAddress = () => new URL(page.url()).searchParams.get("session");
const answer = (text: string) => page.locator("arp-chat .arp-log arp-prose", { hasText: text });
const hasFocus = () => box(page).evaluate((box) => box === document.activeElement);

describe.each([["WebSocket"], ["SSE"]])("over %s", (name) => {
  /** Open a page with two chats, `one NAME` and `two NAME`; the second is shown. Then slow the network down. */
  async function twoChats(): Promise<void> {
    context = await browser.newContext({ viewport: { width: 1100, height: 800 }, reducedMotion: "reduce" });
    context.setDefaultTimeout(8000);
    if (name === "SSE") await context.addInitScript(() => Object.assign(globalThis, { WebSocket: undefined }));
    page = await context.newPage();
    faults = watched(page, proxy.url);
    sockets = 0;
    page.on("websocket", () => (sockets += 1));
    await page.goto(proxy.url);
    await online(page);
    await ask(page, "one");
    await row("one").first().waitFor();
    await newChat().click();
    await page.locator(".arp-welcome").waitFor();
    await ask(page, "two");
    await expect
      .poll(() => page.locator(".arp-session-title").allInnerTexts())
      .toEqual(expect.arrayContaining(["two", "one"]));
    await expect.poll(() => page.locator("arp-chat .arp-spoken").innerText()).toContain("two"); // its last message has arrived
    proxy.delay = DELAY_MS;
  }

  /** Return the newest row with this title; other tests have left rows with the same title. */
  const open = (title: string) => row(title).first().click();

  test("with 300 ms latency, a switch and a new chat show the other chat and nothing in between, without an announcement", async () => {
    await twoChats();
    const opened = sockets;
    await watch();
    await open("one");
    await expect.poll(bubbles).toEqual(["one"]);
    expect(await hasFocus()).toBe(true);
    await expect.poll(() => row("one").first().getAttribute("aria-current")).toBe("page");
    await newChat().click();
    await page.locator(".arp-welcome").waitFor();
    expect(await hasFocus()).toBe(true);
    expect(await bubbles()).toEqual([]);
    await expect.poll(sessionInAddress).not.toBeNull();
    await open("two");
    await expect.poll(bubbles).toEqual(["two"]);
    await page.waitForTimeout(500); // time for late messages
    expect(await seen()).toEqual([]);
    expect(sockets).toBe(opened);
    await say(page, "three");
    await expect.poll(bubbles).toEqual(["two", "three"]);
    await answer("You said: three").waitFor();
  });

  test("while the other chat is requested, the old one cannot be used, and its answer does not appear", async () => {
    await twoChats();
    await say(page, "count 300");
    await page.locator("arp-message", { hasText: "3" }).last().waitFor();
    await page.evaluate(() =>
      document.querySelector(".arp-session:not(:has([aria-current])) a")?.setAttribute("data-next", ""),
    );
    await open("one");
    expect(await page.locator(".arp-column").evaluate((column) => (column as HTMLElement).inert)).toBe(true);
    await expect.poll(bubbles).toEqual(["one"]);
    expect(await page.locator(".arp-column").evaluate((column) => (column as HTMLElement).inert)).toBe(false);
    await page.waitForTimeout(800); // the other turn still counts
    expect(await page.locator("arp-chat .arp-log").innerText()).not.toMatch(/^\d+$/m);
    await open("two");
    await expect.poll(bubbles).toEqual(["two", "count 300"]);
  });

  test("back and forward go through the chats, with their addresses", async () => {
    await twoChats();
    const two = sessionInAddress();
    await open("one");
    await expect.poll(bubbles).toEqual(["one"]);
    const one = sessionInAddress();
    await watch();
    await page.goBack();
    await expect.poll(bubbles).toEqual(["two"]);
    expect(sessionInAddress()).toBe(two);
    await page.goForward();
    await expect.poll(bubbles).toEqual(["one"]);
    expect(sessionInAddress()).toBe(one);
    expect(await seen()).toEqual([]);
    expect(await page.title()).toBe("Harbour");
  });

  test("drafts stay with their chats", async () => {
    await twoChats();
    await box(page).fill("for two");
    await open("one");
    await expect.poll(() => box(page).inputValue()).toBe("");
    await box(page).fill("for one");
    await newChat().click();
    await expect.poll(() => box(page).inputValue()).toBe("");
    await open("two");
    await expect.poll(() => box(page).inputValue()).toBe("for two");
    await open("one");
    await expect.poll(() => box(page).inputValue()).toBe("for one");
  });

  test("switching there and back at once shows only the first chat, and nothing is announced", async () => {
    await twoChats();
    const two = sessionInAddress();
    await watch();
    await page.evaluate(() => {
      const shown = new Set<string>();
      const look = () =>
        document.querySelectorAll("arp-chat .arp-bubble").forEach(({ textContent }) => shown.add(textContent ?? ""));
      new MutationObserver(look).observe(document, { subtree: true, childList: true, characterData: true });
      Object.assign(globalThis, { shown });
    });
    const [one, back] = [row("one").first(), page.locator(".arp-session a[aria-current]")];
    const links = await Promise.all([one, back].map((link) => link.elementHandle()));
    for (const link of links) await link?.evaluate((link) => (link as HTMLElement).click());
    await page.waitForTimeout(6 * DELAY_MS + 600);
    expect(await bubbles()).toEqual(["two"]);
    expect(sessionInAddress()).toBe(two);
    expect(
      await page.evaluate(() =>
        [...(globalThis as unknown as { shown: Set<string> }).shown].filter((text) => text.includes("one")),
      ),
    ).toEqual([]);
    expect(await seen()).toEqual([]);
    await say(page, "after");
    await answer("You said: after").waitFor();
    expect(await bubbles()).toEqual(["two", "after"]);
  });

  test("a message that is sent right after a switch goes to the new chat", async () => {
    await twoChats();
    await page.evaluate(() => (document.querySelector(".page-side .page-new") as HTMLElement).click());
    await say(page, "fresh");
    await answer("You said: fresh").waitFor();
    expect(await bubbles()).toEqual(["fresh"]);
    await open("one");
    await say(page, "to one");
    await answer("You said: to one").waitFor();
    expect(await bubbles()).toEqual(["one", "to one"]);
    await open("two");
    await expect.poll(bubbles).toEqual(["two"]);
  });

  test("a message that waits for the connection goes to the chat where it was sent", async () => {
    await twoChats();
    await page.evaluate(() => document.querySelector("arp-chat")?.activeClient?.disconnect());
    await say(page, "waits in two");
    await open("one");
    await page.evaluate(() => document.querySelector("arp-chat")?.activeClient?.connect());
    await expect.poll(bubbles).toEqual(["one"]);
    await open("two");
    await answer("You said: waits in two").waitFor();
    expect(await bubbles()).toEqual(["two", "waits in two"]);
    await open("one");
    await expect.poll(bubbles).toEqual(["one"]);
  });

  test("a chat that takes longer than a second shows that it is loading, and nothing is announced", async () => {
    await twoChats();
    proxy.delay = 1500;
    await watch();
    await open("one");
    await page.locator("arp-chat .arp-skeleton").waitFor();
    await expect.poll(bubbles, { timeout: 12_000 }).toEqual(["one"]);
    expect(await seen()).toEqual(["skeleton"]);
  });

  test("a missing chat is reported, and another one can be opened", async () => {
    await twoChats();
    proxy.delay = 0;
    await page.evaluate(() => document.querySelector("arp-chat")?.turnTo("\u00e9"));
    await page.locator('.arp-banner[data-phase="refused"]').waitFor();
    await open("one");
    await expect.poll(bubbles).toEqual(["one"]);
    await page.locator('.page-link[data-phase="online"]').waitFor();
    expect(await page.locator(".arp-banner").count()).toBe(0);
    faults.lines.splice(0, faults.lines.length, ...faults.lines.filter((line) => !/40\d/.test(line)));
  });
});
