/** Streaming, scrolling and stopping, also with a lost connection (webui.md W6–W25). */

import { readFileSync } from "node:fs";

import { describe, expect, test } from "vitest";

import { ask, box, log, online, say } from "../src/host.js";
import { begin, page, usePages } from "../src/stage.js";

const LONG = readFileSync(new URL("../long.md", import.meta.url), "utf8");

usePages();

const scroller = () => page.locator(".arp-scroller");
const top = () => scroller().evaluate((place) => place.scrollTop);

describe("scrolling", () => {
  test("W15 at the bottom the view follows; after one turn of the wheel upward it stays", async () => {
    await begin();
    await say(page, "count 250");
    await log(page).getByText("60", { exact: true }).waitFor();
    const gaps = await scroller().evaluate(async (place) => {
      const found: number[] = [];
      for (let frame = 0; frame < 30; frame += 1) {
        await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
        found.push(place.scrollHeight - place.scrollTop - place.clientHeight);
      }
      return found;
    });
    expect(Math.max(...gaps)).toBeLessThanOrEqual(2);
    await page.mouse.move(500, 300);
    await page.mouse.wheel(0, -400);
    await page.getByRole("button", { name: /Jump to latest/ }).waitFor();
    const before = await top();
    await log(page).getByText("200", { exact: true }).waitFor({ state: "attached" });
    expect(await top()).toBe(before);
  });

  test("W16 the button to the newest text has a name and a count, works by keyboard, and disappears", async () => {
    await begin();
    await ask(page, "count 60");
    await page.mouse.move(500, 300);
    await page.mouse.wheel(0, -600);
    const jump = page.getByRole("button", { name: /^Jump to latest/ });
    await jump.waitFor();
    await page.evaluate(() => document.querySelector("arp-chat")?.activeClient?.sendText("hello"));
    await page.getByRole("button", { name: "Jump to latest, 1 new message" }).waitFor();
    await jump.focus();
    await page.keyboard.press("Enter");
    await jump.waitFor({ state: "hidden" });
    expect(
      await scroller().evaluate((place) => place.scrollHeight - place.scrollTop - place.clientHeight),
    ).toBeLessThanOrEqual(4);
  });

  test("W18 the window itself never scrolls, and a selection survives later text", async () => {
    await begin();
    await ask(page, "hello");
    await page.locator(".arp-reply strong").selectText();
    await page.evaluate(() => document.querySelector("arp-chat")?.activeClient?.sendText("count 80"));
    await log(page).getByText("80", { exact: true }).waitFor({ state: "attached" });
    expect(
      await page.evaluate(() => [String(getSelection()), scrollY, document.documentElement.scrollHeight - innerHeight]),
    ).toEqual(["hello", 0, 0]);
  });
});

describe("streaming", () => {
  test("W13 10,000 deltas at 1,000 per second show every character in its place; prints the figures", async () => {
    await begin();
    await page.evaluate(() => {
      const seen = { tasks: [] as number[], frames: [] as number[], last: performance.now() };
      Object.assign(globalThis, { seen });
      new PerformanceObserver((list) => seen.tasks.push(...list.getEntries().map(({ duration }) => duration))).observe({
        type: "longtask",
      });
      const frame = (now: number) => {
        seen.frames.push(now - seen.last);
        seen.last = now;
        requestAnimationFrame(frame);
      };
      requestAnimationFrame(frame);
    });
    await say(page, "burst 10000 1000");
    await page.locator("arp-message[data-status=completed]").waitFor({ timeout: 50_000 });
    await log(page).getByText("The end.").waitFor();
    const { tasks, frames } = await page.evaluate(
      () => (globalThis as unknown as { seen: { tasks: number[]; frames: number[] } }).seen,
    );
    const sorted = frames.toSorted((one, other) => one - other);
    const p95 = sorted[Math.floor(sorted.length * 0.95)] as number;
    console.log(
      `10,000 deltas: ${tasks.length} long tasks (${tasks.map(Math.round).join(", ")}), p95 frame ${p95.toFixed(1)} ms`,
    );
    // Figures belong to `make bench`: on a busy machine they mean nothing. This test checks the text.
    expect(
      await page.evaluate(
        () => document.querySelector("arp-chat")?.activeClient?.store.turn("t1").get()?.output[0]?.props.content,
      ),
    ).toBe(LONG);
    const headings = [...LONG.matchAll(/^## (.+)$/gm)].map(([, heading]) => heading);
    expect(await page.locator("arp-prose .arp-h2").allInnerTexts()).toEqual(headings);
  }, 90_000);

  test("W20 finished blocks keep their nodes while the rest grows", async () => {
    await begin();
    await say(page, "count 120");
    await log(page).getByText("20", { exact: true }).waitFor();
    await page.evaluate(() => Object.assign(globalThis, { first: document.querySelector(".arp-reply p") }));
    await log(page).getByText("120", { exact: true }).waitFor();
    expect(
      await page.evaluate(
        () => (globalThis as unknown as { first: Node }).first === document.querySelector(".arp-reply p"),
      ),
    ).toBe(true);
  });

  test("W21 two components that change together are never shown with only one changed", async () => {
    await begin();
    await page.evaluate(() => {
      const halves: string[] = [];
      let looks = 0;
      Object.assign(globalThis, { halves, looks: () => looks });
      new MutationObserver(() => {
        const titles = [...document.querySelectorAll("arp-status-card .arp-title")].map(({ textContent }) =>
          (textContent ?? "").replace(/\D/g, ""),
        );
        looks += 1;
        if (titles.length === 1 || (titles.length === 2 && titles[0] !== titles[1])) halves.push(titles.join(" "));
      }).observe(document.body, { subtree: true, childList: true, characterData: true });
    });
    await ask(page, "swap 60");
    await page.locator("arp-status-card", { hasText: "60" }).nth(1).waitFor();
    const [halves, looks] = await page.evaluate(() => {
      const seen = globalThis as unknown as { halves: string[]; looks(): number };
      return [seen.halves, seen.looks()] as const;
    });
    expect(looks).toBeGreaterThan(20);
    expect(halves).toEqual([]);
  });

  test("W23 stop and Escape end the turn; the text stays, and the next message works", async () => {
    await begin();
    await say(page, "count 300");
    await log(page).getByText("10", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await page.locator(".arp-ending", { hasText: "Stopped" }).waitFor();
    await log(page).getByText("10", { exact: true }).waitFor();
    expect(await box(page).evaluate((element) => element === document.activeElement)).toBe(true);
    await say(page, "count 300");
    await page.locator("arp-message[data-status=running]").waitFor();
    await box(page).press("Escape");
    await page.locator(".arp-ending").nth(1).waitFor();
    await ask(page, "after");
    await log(page).getByText("You said: after").waitFor();
  });

  test("W24 messages sent during an answer are queued in order, also over a reload", async () => {
    await begin();
    await say(page, "count 300");
    await say(page, "second");
    await say(page, "third");
    await log(page).getByText("Queued, number 2").waitFor();
    await page.reload();
    await online(page);
    await log(page).getByText("Queued, number 2").waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await log(page).getByText("You said: third").waitFor();
    expect(await page.locator(".arp-bubble").allInnerTexts()).toEqual(["count 300", "second", "third"]);
  });

  test("W25 a hidden tab has the whole text when the user returns to it", async () => {
    await begin();
    const other = await page.context().newPage();
    await say(page, "count 150");
    await other.bringToFront();
    await page.locator("arp-message[data-status=completed]").waitFor({ state: "attached", timeout: 20_000 });
    await page.bringToFront();
    await log(page).getByText("150", { exact: true }).waitFor();
    expect(await page.locator(".arp-reply p").count()).toBe(150);
  });
});

describe("the connection", () => {
  test("W6 W7 a lost connection is shown, keeps the text, reconnects, and loses or repeats nothing", async () => {
    await begin();
    const held: { close(options: { code: number }): unknown }[] = [];
    let isDark = false;
    await page.routeWebSocket("**/_arp/v1", (socket) => {
      if (isDark) void socket.close({ code: 1012 });
      else {
        held.push(socket);
        socket.connectToServer();
      }
    });
    await page.addInitScript(() => {
      Math.random = () => 1; // the longest delays, and no other transport
      const fetched = fetch;
      globalThis.fetch = (url, init) =>
        String(url).includes("/_arp/v1/events")
          ? Promise.reject(new TypeError("by sockets alone"))
          : fetched(url, init);
    });
    await page.reload();
    await online(page);
    await say(page, "count 200");
    await log(page).getByText("20", { exact: true }).waitFor();
    isDark = true;
    await held.at(-1)?.close({ code: 1012 });
    const banner = page.locator("arp-banner", { hasText: /Reconnecting in \d+ s \(attempt \d+\)/ });
    await banner.waitFor({ timeout: 3000 });
    await log(page).getByText("20", { exact: true }).waitFor();
    await box(page).fill("still here");
    await banner.getByText(/\(attempt (?:[3-9]|\d\d)\)/).waitFor(); // the next attempt is some seconds away
    isDark = false;
    await banner.getByRole("button", { name: "Try again" }).click();
    await banner.waitFor({ state: "hidden" });
    await page.locator(".arp-status", { hasText: "Connected again" }).waitFor({ state: "attached" });
    await log(page).getByText("200", { exact: true }).waitFor();
    const counted = await page.locator(".arp-reply p").allInnerTexts();
    expect(counted).toEqual(Array.from({ length: 200 }, (_, at) => String(at + 1)));
    expect(await box(page).inputValue()).toBe("still here");
  });

  test("W9 without WebSockets the same conversation arrives by server-sent events, and the page shows it", async () => {
    await begin();
    await page.routeWebSocket("**/_arp/v1", (socket) => void socket.close({ code: 1011 }));
    await page.addInitScript(() => {
      Object.assign(globalThis, {
        WebSocket: class {
          constructor() {
            throw new Error("no sockets here");
          }
        },
      });
    });
    await page.reload();
    await online(page);
    await ask(page, "count 40");
    expect(await page.locator(".arp-reply p").count()).toBe(40);
    expect(await page.locator(".page-link").getAttribute("title")).toBe("Connected · SSE");
  });

  test("W10 after an error the message box works, and the card offers to try again", async () => {
    await begin();
    await ask(page, "fail");
    await page
      .locator(".arp-trouble", { hasText: "the agent failed" })
      .getByRole("button", { name: "Try again" })
      .waitFor();
    expect(await log(page).innerText()).not.toContain("secret");
    await ask(page, "after");
    await log(page).getByText("You said: after").waitFor();
  });

  test("W12 late messages of an old session are never shown in another one", async () => {
    await begin();
    await say(page, "count 300");
    await log(page).getByText("10", { exact: true }).waitFor();
    await page.getByRole("link", { name: "New chat" }).first().click();
    await page.locator(".arp-welcome").waitFor();
    await ask(page, "hello");
    expect(await page.locator(".arp-bubble").allInnerTexts()).toEqual(["hello"]);
    expect((await log(page).locator(".arp-reply").allInnerTexts()).join()).not.toContain("10");
  });
});
