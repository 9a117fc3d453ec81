/** The page before its script is loaded, and opening a long conversation. */

import type { BrowserContextOptions, Page } from "playwright-core";
import { afterEach, describe, expect, test } from "vitest";

import { box, converse, log, online, watched, type Faults } from "../src/host.js";
import { begin, browser, page as opened, server, useServer } from "../src/stage.js";

useServer();

const SETTINGS = "arp.settings";
const early = (page: Page) => page.locator(".page-early textarea");

/** Return the styles of the message box and its frame. */
const looks = (page: Page, box: string) =>
  page.locator(box).evaluate((area) =>
    [area, area.closest(".arp-composer"), area.closest(".arp-dock")].map((part) => {
      const { color, backgroundColor, borderRadius, borderWidth, boxShadow, boxSizing, font, padding, margin } =
        getComputedStyle(part as Element);
      return { color, backgroundColor, borderRadius, borderWidth, boxShadow, boxSizing, font, padding, margin };
    }),
  );

describe("before the script is loaded", () => {
  let page: Page;
  let faults: Faults;
  let release: () => void;

  afterEach(async () => {
    await page.context().close();
    expect(faults.lines).toEqual([]);
  });

  /** Open the page; its script is held back until `release` is called. */
  async function hold(settings: object = {}, options: BrowserContextOptions = {}): Promise<void> {
    const context = await browser.newContext({ viewport: { width: 1100, height: 800 }, ...options });
    context.setDefaultTimeout(15_000);
    page = await context.newPage();
    faults = watched(page, server.url);
    const released = new Promise<void>((resolve) => (release = resolve));
    await page.addInitScript(([key, value]) => localStorage.setItem(key, value), [
      SETTINGS,
      JSON.stringify(settings),
    ] as const);
    await page.route("**/_static/page-*.js", async (route) => {
      await released;
      await route.continue();
    });
    await page.goto(server.url, { waitUntil: "commit" });
    await early(page).waitFor();
  }

  test("W3 the message box has its final position and look, and text that is typed there stays", async () => {
    await hold();
    const before = await early(page).boundingBox();
    const look = await looks(page, ".page-early textarea");
    await early(page).fill("Which ships");
    release();
    await online(page);
    await expect.poll(() => box(page).inputValue()).toBe("Which ships");
    expect(await early(page).count()).toBe(0);
    await page.keyboard.type(" are here?");
    expect(await box(page).inputValue()).toBe("Which ships are here?");
    const after = await box(page).boundingBox();
    expect([after?.x, after?.y, after?.width]).toEqual([before?.x, before?.y, before?.width]);
    expect(await looks(page, "arp-composer textarea")).toEqual(look);
  });

  test("W3 the message box has the cursor without a click, before and after, and no key is lost in between", async () => {
    await hold();
    const hasCursor = () => page.evaluate(() => document.activeElement?.matches("textarea"));
    await expect.poll(hasCursor).toBe(true);
    const typed = "Which ships are here, and which of them leave today?";
    const typing = page.keyboard.type(typed, { delay: 20 });
    await expect.poll(() => early(page).inputValue()).toContain("Which");
    release();
    await typing;
    await online(page);
    expect(await box(page).inputValue()).toBe(typed);
    expect(await early(page).count()).toBe(0);
    expect(await hasCursor()).toBe(true);
  });

  test("W73 on a touch screen nothing has the focus, so that no keyboard opens", async () => {
    await hold({}, { hasTouch: true, isMobile: true });
    release();
    await online(page);
    expect(await page.evaluate(() => document.activeElement?.localName)).toBe("body");
  });

  test("W3 a message that is sent before the script is loaded is sent afterwards", async () => {
    await hold();
    await early(page).fill("hello");
    await early(page).press("Enter");
    release();
    await log(page).getByText("You said: hello").waitFor();
    expect(await box(page).inputValue()).toBe("");
  });

  test("W70 W72 theme, direction and panel are those of the user from the first paint on", async () => {
    await hold({ theme: "dark", locale: "ar", panel: false });
    const seen = await page.evaluate(() => ({
      dir: document.documentElement.dir,
      ground: getComputedStyle(document.documentElement).backgroundColor,
      panel: document.querySelector(".page-side")?.checkVisibility(),
    }));
    expect(seen).toEqual({ dir: "rtl", ground: "rgb(20, 22, 24)", panel: false });
    release();
    await online(page);
    await expect.poll(() => page.evaluate(() => document.documentElement.lang)).toBe("ar");
    expect(await page.locator(".page-side").isVisible()).toBe(false);
  });
});

test("W60 a long conversation shows its end first, then all its turns, and stays at the end", async () => {
  await begin();
  await converse(opened, 40);
  const ids = await opened.evaluate(() => [
    ...(document.querySelector("arp-chat")?.activeClient?.store.turnIds.get() ?? []),
  ]);
  await opened.reload();
  await log(opened).getByText("turn 40", { exact: true }).first().waitFor();
  await expect.poll(() => log(opened).locator("arp-message").count()).toBe(40);
  const drawn = await log(opened)
    .locator("arp-message")
    .evaluateAll((all) => all.map((one) => (one as HTMLElement).dataset.turn));
  expect(drawn).toEqual(ids);
  await expect
    .poll(() =>
      opened
        .locator(".arp-scroller")
        .evaluate((place) => Math.round(place.scrollHeight - place.scrollTop - place.clientHeight)),
    )
    .toBeLessThanOrEqual(4);
  await opened.context().close();
});
