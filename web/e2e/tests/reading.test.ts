/** Visible text does not move when content around it arrives or grows (webui.md W17). */

import type { Locator } from "playwright-core";
import { expect, test } from "vitest";

import { ask, converse, log, online } from "../src/host.js";
import { begin, page, usePages } from "../src/stage.js";

usePages();

/** Scroll up with the wheel until an element is in the upper half of the view, and scrolling has ended. */
async function scrollTo(place: Locator): Promise<void> {
  await page.mouse.move(500, 300);
  const top = () => place.evaluate((element) => element.getBoundingClientRect().top);
  while ((await top()) < 150) {
    await page.mouse.wheel(0, Math.round((await top()) - 300));
    await frames(3);
  }
}

/** Wait for a number of frames. */
const frames = (count: number) =>
  page.evaluate(async (left) => {
    for (let at = 0; at < left; at += 1) await new Promise((resolve) => requestAnimationFrame(resolve));
  }, count);

/** Return the largest distance that an element moves in any frame during an action. */
async function moved(place: Locator, act: () => Promise<unknown>): Promise<number> {
  await place.evaluate((element) => {
    const first = element.getBoundingClientRect().top;
    const seen = { most: 0, isWatched: true };
    Object.assign(globalThis, { seen });
    // The painted state is the one after all resize observers have run. A new observer runs last.
    const look = () => {
      const last = new ResizeObserver(() => {
        last.disconnect();
        seen.most = Math.max(seen.most, Math.abs(element.getBoundingClientRect().top - first));
        if (seen.isWatched) requestAnimationFrame(look);
      });
      last.observe(element);
    };
    requestAnimationFrame(look);
  });
  await act();
  await frames(5);
  return page.evaluate(() => {
    const { seen } = globalThis as unknown as { seen: { most: number; isWatched: boolean } };
    seen.isWatched = false;
    return seen.most;
  });
}

/** Hold back a picture of 300 by 500 pixels; return a function that sends it. */
async function latePicture(): Promise<() => void> {
  let release = () => undefined as void;
  const isReleased = new Promise<void>((resolve) => (release = resolve));
  await page.route("**/_api/blobs/late", async (route) => {
    await isReleased;
    await route.fulfill({
      contentType: "image/svg+xml",
      body: '<svg xmlns="http://www.w3.org/2000/svg" width="300" height="500"/>',
    });
  });
  return release;
}

const PICTURE = `show ${JSON.stringify([{ type: "image", props: { src: "/_api/blobs/late", alt: "late" } }])}`;

test("W17 older messages that are loaded above do not move the visible text", async () => {
  await begin();
  await converse(page, 70);
  let release = () => undefined as void;
  const isReleased = new Promise<void>((resolve) => (release = resolve));
  await page.route(/\/_api\/chats\/[^?]+\?.*before=/, async (route) => {
    await isReleased;
    await route.continue();
  });
  await page.reload();
  await online(page);
  const read = page.locator(".arp-bubble", { hasText: /^turn 23$/ });
  await log(page).getByText("You said: turn 70", { exact: true }).waitFor();
  await expect.poll(() => page.locator(".arp-scroller").evaluate((place) => place.scrollTop)).toBeGreaterThan(1000);
  await scrollTo(read);
  await page.locator(".arp-older[aria-busy=true]").waitFor({ state: "attached" });
  expect(await page.locator("arp-message").count()).toBe(50);
  const most = await moved(read, async () => {
    release();
    await expect.poll(() => page.locator("arp-message").count()).toBe(70);
  });
  expect(most).toBeLessThanOrEqual(2);
});

test("W17 a card that is opened stays under the pointer, also at the bottom of the chat", async () => {
  await begin();
  await ask(page, "count 40");
  await ask(page, "tools");
  const card = page.locator(".arp-step summary").first();
  expect(await moved(card, () => card.click())).toBeLessThanOrEqual(2);
  expect(
    await page
      .locator(".arp-step")
      .first()
      .evaluate((step) => (step as HTMLDetailsElement).open),
  ).toBe(true);
  expect(await moved(card, () => card.press("Enter"))).toBeLessThanOrEqual(2);
});

test("W17 a card that opens and a late image, both above the visible text, do not move it", async () => {
  await begin();
  const release = await latePicture();
  await ask(page, "tools");
  await ask(page, PICTURE);
  const image = page.locator("arp-image img");
  await image.waitFor({ state: "attached" });
  await ask(page, "count 60");
  const read = log(page).getByText("30", { exact: true });
  await scrollTo(read);
  expect(await page.locator("arp-image").evaluate((element) => element.getBoundingClientRect().bottom)).toBeLessThan(0);
  const opened = await moved(read, () =>
    page
      .locator(".arp-step summary")
      .first()
      .evaluate((summary) => (summary as HTMLElement).click()),
  );
  expect(opened).toBeLessThanOrEqual(2);
  const shown = await moved(read, async () => {
    release();
    await expect.poll(() => image.evaluate((element) => element.getBoundingClientRect().height)).toBeGreaterThan(400);
  });
  expect(shown).toBeLessThanOrEqual(2);
});

test("W17 a late image does not move the newest text at the bottom", async () => {
  await begin();
  const release = await latePicture();
  await ask(page, "count 40");
  await ask(page, PICTURE);
  await ask(page, "hello");
  const read = log(page).getByText("You said: hello");
  const image = page.locator("arp-image img");
  const most = await moved(read, async () => {
    release();
    await expect.poll(() => image.evaluate((element) => element.getBoundingClientRect().height)).toBeGreaterThan(400);
  });
  expect(most).toBeLessThanOrEqual(2);
});

test("W17 W22 of many components those far out of sight are laid out later, without a visible effect", async () => {
  await begin();
  const cards = Array.from({ length: 80 }, (_, at) => ({
    type: "status-card",
    props: { status: "info", title: `card ${at}` },
  }));
  const small = { type: "table", props: { headers: ["a"], rows: [["1"]] } };
  await ask(page, `show ${JSON.stringify([...cards, small, ...cards.slice(0, 1)])}`);
  const table = page.locator(".arp-reply arp-table");
  await table.locator("table").waitFor();
  const isLaidOut = (at: number) =>
    page
      .locator(".arp-reply .arp-status")
      .nth(at)
      .evaluate((card) => card.checkVisibility({ contentVisibilityAuto: true }));
  const scroller = page.locator(".arp-scroller");
  await page.getByRole("button", { name: /^Jump to latest/ }).click(); // an answer that arrives at once is shown from its beginning
  await expect
    .poll(() =>
      scroller.evaluate(({ scrollHeight, scrollTop, clientHeight }) => scrollHeight - scrollTop - clientHeight),
    )
    .toBeLessThan(2);
  await expect.poll(() => isLaidOut(40)).toBe(false);
  expect(await isLaidOut(0)).toBe(true);
  expect(await isLaidOut(80)).toBe(true);
  // The menu is larger than its small table and covers the card below.
  await table.locator("summary").click();
  await table.getByRole("button", { name: "Download" }).click({ trial: true });
  await page.keyboard.press("Escape");
  await page.emulateMedia({ media: "print" });
  await expect.poll(() => isLaidOut(40)).toBe(true);
  await page.emulateMedia({ media: null });
  await expect.poll(() => isLaidOut(40)).toBe(false);
  const read = page.locator(".arp-reply .arp-status").nth(40);
  await scrollTo(read);
  expect(await isLaidOut(40)).toBe(true);
  expect(await moved(read, () => frames(10))).toBeLessThan(2);
});
