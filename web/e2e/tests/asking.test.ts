/** The user's question is at the top of the view, and the answer fills the space below it (webui.md W15). */

import { fileURLToPath } from "node:url";

import type { BrowserContextOptions, Locator } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { ArpServer, ask, box, log, online, say } from "../src/host.js";
import { begin, page, usePages } from "../src/stage.js";

const DEMO = fileURLToPath(new URL("../../../examples/explorer/app.py", import.meta.url));

const SIZES: readonly (readonly [string, BrowserContextOptions])[] = [
  ["1440×900", { viewport: { width: 1440, height: 900 } }],
  ["390×844", { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }],
];

/** Positions in a painted frame, in pixels. */
interface Frame {
  /** Distance from the top of the view to the newest question. */
  readonly asked: number;
  /** Distance from the end of the last answer to the lower edge of the view. */
  readonly below: number;
  /** Distance that the view can still be scrolled down. */
  readonly gap: number;
}

usePages();

let demo: ArpServer;
beforeAll(async () => {
  demo = await ArpServer.start(DEMO);
});
afterAll(() => demo?.stop());

const bubble = (text: string) => page.locator(".arp-bubble", { hasText: new RegExp(`^${text}$`) }).last();
const jump = () => page.getByRole("button", { name: /^Jump to latest/ });

/** Return the distances of an element from the top and from the lower edge of the view. */
const place = (element: Locator) =>
  element.evaluate((one) => {
    const view = document.querySelector(".arp-scroller")?.getBoundingClientRect() as DOMRect;
    const { top, bottom } = one.getBoundingClientRect();
    return { top: Math.round(top - view.top), bottom: Math.round(view.bottom - bottom) };
  });

const gap = () =>
  page.locator(".arp-scroller").evaluate((view) => view.scrollHeight - view.scrollTop - view.clientHeight);

/** Return the padding above the first message, which is also the distance of a question from the top of the view. */
const padding = () =>
  page.locator(".arp-column").evaluate((column) => Number.parseFloat(getComputedStyle(column).paddingTop));

/** Record every frame with this newest message; return a function that stops it and returns the frames. */
async function watch(text: string): Promise<() => Promise<Frame[]>> {
  await page.evaluate((wanted) => {
    const seen = { frames: [] as Frame[], isWatched: true };
    Object.assign(globalThis, { seen });
    const view = document.querySelector(".arp-scroller") as HTMLElement;
    const look = () => {
      // The painted state is the one after all resize observers have run. A new observer runs last.
      const last = new ResizeObserver(() => {
        last.disconnect();
        const requested = [...view.querySelectorAll(".arp-bubble")].at(-1);
        if (requested?.textContent === wanted) {
          const { top, bottom } = view.getBoundingClientRect();
          const end = [...view.querySelectorAll("article")].at(-1)?.getBoundingClientRect().bottom ?? 0;
          seen.frames.push({
            asked: requested.getBoundingClientRect().top - top,
            below: bottom - end,
            gap: view.scrollHeight - view.scrollTop - view.clientHeight,
          });
        }
        if (seen.isWatched) requestAnimationFrame(look);
      });
      last.observe(view);
    };
    requestAnimationFrame(look);
  }, text);
  return () =>
    page.evaluate(() => {
      const { seen } = globalThis as unknown as { seen: { frames: Frame[]; isWatched: boolean } };
      seen.isWatched = false;
      return seen.frames;
    });
}

/** Return the smallest and the largest number. */
const range = (numbers: readonly number[]) =>
  [Math.min(...numbers), Math.max(...numbers)].map((number) => Math.round(number) + 0); // 0, not -0

describe.each(SIZES)("at %s", (_size, options) => {
  test("W15 after the first click of the demo its question is at the top, its chart is completely visible, and a button leads to the agent's question", async () => {
    await begin({ ...options, url: demo.url });
    const text = "Show the average temperature by month";
    const seen = await watch(text);
    await page.getByRole("button", { name: text }).click();
    await page.locator("arp-message[data-status=waiting]").waitFor();
    const chart = page.locator(".arp-reply arp-chart").first();
    await chart.locator("svg").first().waitFor();
    await page.getByRole("button", { name: "Jump to latest, The agent is waiting for your answer" }).waitFor();
    const frames = await seen();
    expect(range(frames.map(({ asked: requested }) => requested))).toEqual([await padding(), await padding()]);
    const drawn = await place(chart);
    expect(drawn.top).toBeGreaterThan(0);
    expect(drawn.bottom).toBeGreaterThanOrEqual(0);
    await jump().click();
    const question = page.locator(".arp-reply arp-confirm");
    await expect.poll(async () => (await place(question)).bottom).toBeGreaterThanOrEqual(0);
    expect((await place(question)).top).toBeGreaterThan(0);
    await jump().waitFor({ state: "hidden" });
    // While the question is open, another message is sent: the agent leaves the question and begins the new turn.
    await say(page, "Top 5 cars by horsepower");
    const next = page.locator("arp-message").nth(1);
    await next.and(page.locator("[data-status=waiting]")).waitFor();
    await next.locator("arp-chart svg").first().waitFor();
    await expect.poll(async () => (await place(next)).top).toBe(await padding());
    expect((await place(next.locator("arp-chart").first())).top).toBeGreaterThan(0);
  });

  test("W15 nothing scrolls until the answer has filled the view; then the view follows its end", async () => {
    await begin(options);
    await ask(page, "hello");
    const seen = await watch("count 80");
    await say(page, "count 80");
    await page.locator("arp-message[data-status=completed]").nth(1).waitFor();
    await log(page).getByText("80", { exact: true }).waitFor();
    const frames = await seen();
    const top = await padding();
    const room = frames.slice(
      0,
      frames.findIndex(({ below }) => below < 60),
    ); // a part of it is the space below the answer
    expect(room.length).toBeGreaterThan(1);
    expect(range(room.map(({ asked: requested }) => requested - top))).toEqual([0, 0]);
    expect(Math.max(...frames.map(({ gap }) => gap))).toBeLessThanOrEqual(2);
    expect(frames.at(-1)?.asked).toBeLessThan(-500);
    expect(await jump().count()).toBe(0);
  });

  test("W15 W17 a short answer leaves the question at the top: when it ends, when the box grows, when the window changes", async () => {
    await begin(options);
    await ask(page, "count 30");
    const seen = await watch("hello");
    await ask(page, "hello");
    await box(page).fill("one\ntwo\nthree\nfour\nfive");
    await box(page).fill("");
    const { width = 0, height = 0 } = page.viewportSize() ?? {};
    await page.setViewportSize({ width, height: height - 300 }); // like the keyboard of a phone
    await page.setViewportSize({ width, height });
    await box(page).fill("more");
    const frames = await seen();
    const top = await padding();
    expect(range(frames.map(({ asked: requested }) => requested - top))).toEqual([0, 0]);
    expect(await jump().count()).toBe(0);
  });
});

test("W15 an answer that arrives at once and does not fit is shown from its beginning; at its end the next message goes to the top", async () => {
  await begin();
  await ask(page, "hello");
  await ask(page, "cards 30");
  await jump().waitFor();
  expect((await place(page.locator(".arp-said").nth(1))).top).toBe(await padding());
  await jump().click();
  await expect.poll(gap).toBeLessThanOrEqual(2);
  await ask(page, "hello");
  expect((await place(bubble("hello"))).top).toBe(await padding());
  expect(await jump().count()).toBe(0);
});

test("W15 content that does not fit below the question stays below the view, and so does the text after it", async () => {
  await begin();
  await ask(page, "mixed");
  expect((await place(bubble("mixed"))).top).toBe(await padding());
  await page.setViewportSize({ width: 1100, height: 620 });
  const seen = await watch("mixed");
  await ask(page, "mixed");
  await jump().waitFor();
  const frames = await seen();
  const top = await padding();
  expect(
    range(frames.filter(({ asked: requested }) => requested < 400).map(({ asked: requested }) => requested - top)),
  ).toEqual([0, 0]);
});

test("W15 the end of a question that is longer than the view is shown, and the answer below it", async () => {
  await begin();
  await page.setViewportSize({ width: 1100, height: 420 });
  await ask(page, "hello");
  const lines = Array.from({ length: 24 }, (_, at) => `line ${at}`).join("\n"); // one more would fold
  await ask(page, lines);
  const { height } = (await page.locator(".arp-scroller").boundingBox()) as { height: number };
  const sent = await place(page.locator(".arp-said").nth(1));
  expect(sent.top).toBeLessThan(-300);
  expect(Math.abs(sent.bottom - height / 2)).toBeLessThan(60);
});

test("W15 W24 a queued message stays below the running turn, also when it begins, and is answered there", async () => {
  await begin();
  await say(page, "count 300"); // takes at least three seconds
  await log(page).getByText("5", { exact: true }).waitFor();
  await say(page, "count 3");
  await log(page).getByText("Queued", { exact: true }).waitFor();
  const seen = await watch("count 3");
  await page.locator("arp-message[data-status=completed]").nth(1).waitFor();
  const frames = await seen();
  expect(Math.max(...frames.map(({ gap }) => gap))).toBeLessThanOrEqual(2);
  // It has moved up by the height of its answer, and not to the top of the view.
  expect(frames.at(-1)?.asked).toBeGreaterThan(200);
});

test("W15 W33 another version of a message goes to the top, wherever the view is", async () => {
  await begin();
  await ask(page, "count 60");
  await ask(page, "hello");
  await ask(page, "count 50");
  const first = page.locator("arp-message").first();
  await first.locator(".arp-said").hover();
  await first.getByRole("button", { name: "Edit" }).click();
  await first.locator("textarea").fill("hello again");
  await first.locator("textarea").press("Enter");
  await log(page).getByText("You said: hello again").waitFor();
  expect(await page.locator("arp-message").count()).toBe(1);
  expect((await place(bubble("hello again"))).top).toBe(await padding());
  await ask(page, "count 4");
  await page.locator("arp-message").nth(1).getByRole("button", { name: "Regenerate" }).click();
  await page.locator(".arp-versions", { hasText: "2/2" }).nth(1).waitFor();
  await page.locator("arp-message[data-status=completed]").nth(1).waitFor();
  expect((await place(bubble("count 4"))).top).toBe(await padding());
});

test("W15 a choice that begins a turn goes to the top like a message", async () => {
  await begin();
  await ask(page, "count 40");
  await ask(page, "choices");
  await page.locator("arp-choices").getByText("Wind").click();
  await log(page).getByText("You took Wind.").waitFor();
  expect((await place(page.locator(".arp-said").last())).top).toBe(await padding());
});

test("W15 W58 messages from other tabs are followed at the end, and do not move a view to the top", async () => {
  await begin();
  await ask(page, "count 60");
  const other = await page.context().newPage();
  await other.goto(page.url());
  await online(other);
  const seen = await watch("hello");
  await say(other, "hello");
  await log(page).getByText("You said: hello").waitFor();
  const frames = await seen();
  expect(Math.max(...frames.map(({ gap }) => gap))).toBeLessThanOrEqual(2);
  expect((await place(bubble("hello"))).top).toBeGreaterThan(300);
});

test("W7 W15 a reconnect leaves the question at the top; a reload begins at the end", async () => {
  await begin();
  const held: { close(options: { code: number }): unknown }[] = [];
  await page.routeWebSocket("**/_arp/v1", (socket) => {
    held.push(socket);
    socket.connectToServer();
  });
  await page.reload();
  await online(page);
  await ask(page, "count 60");
  await ask(page, "hello");
  const seen = await watch("hello");
  await held.at(-1)?.close({ code: 1012 });
  await page.locator(".arp-status", { hasText: "Connected again" }).waitFor({ state: "attached" });
  const top = await padding();
  expect(range((await seen()).map(({ asked: requested }) => requested - top))).toEqual([0, 0]);
  await page.reload();
  await log(page).getByText("You said: hello").waitFor();
  await expect.poll(gap).toBeLessThanOrEqual(2);
  expect((await place(page.locator(".arp-reply").last())).bottom).toBeLessThan(120);
});
