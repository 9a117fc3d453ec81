/** Look of the page, use with screen reader and keyboard (webui.md W62–W74), and harmless output (W76–W81). */

import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";

import { faultsOfAxe } from "../src/axe.js";
import { ask, box, log, say } from "../src/host.js";
import { begin, page, server, usePages } from "../src/stage.js";

usePages();

describe.each([
  ["light", "en-GB"],
  ["dark", "en-GB"],
  ["light", "ar"],
  ["dark", "ar"],
] as const)("%s, %s", (colorScheme, locale) => {
  test("W62 W67 axe finds no faults in the welcome, an answer with components, a question, a menu, a narrow window", async () => {
    await begin({ colorScheme, locale });
    expect(await faultsOfAxe(page)).toEqual([]);
    await ask(page, "mixed");
    await page.locator("arp-table table").waitFor();
    await ask(page, "tools");
    await ask(page, "fail");
    await say(page, "permission");
    await page.locator(".arp-permission").waitFor();
    expect(await faultsOfAxe(page)).toEqual([]);
    await page.locator(".page-head arp-menu button").first().click();
    await page.getByRole("menu").waitFor();
    expect(await faultsOfAxe(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await page.setViewportSize({ width: 320, height: 640 });
    await page.locator(".page-menu").click();
    expect(await faultsOfAxe(page)).toEqual([]);
  });
});

test("W62 axe finds no faults in a table question, open and answered", async () => {
  await begin();
  await say(page, "rows");
  await page.getByRole("checkbox", { name: "Oslo" }).check();
  expect(await faultsOfAxe(page)).toEqual([]);
  await page.locator("arp-table").getByRole("button", { name: "Submit" }).click();
  await page.getByText("Rows [0].").waitFor();
  expect(await faultsOfAxe(page)).toEqual([]);
});

describe("screen readers", () => {
  test("W63 there are landmarks; each message is a labelled article; the log is silent while text grows", async () => {
    await begin();
    await ask(page, "hello");
    for (const role of ["banner", "main", "navigation", "form"] as const)
      expect(await page.getByRole(role).count(), role).toBeGreaterThan(0);
    expect(
      await page.getByRole("article").evaluateAll((all) => all.map((one) => one.getAttribute("aria-label"))),
    ).toEqual(["You said", "Agent said"]);
    expect(await page.getByRole("log", { name: "Messages" }).getAttribute("aria-live")).toBe("off");
  });

  test("W64 begin and end of an answer are announced, and the complete answer is read once", async () => {
    await begin();
    await page.evaluate(() => {
      const lines: string[] = [];
      Object.assign(globalThis, { lines });
      for (const place of document.querySelectorAll(".arp-status, .arp-spoken")) {
        new MutationObserver(() => lines.push(place.textContent ?? "")).observe(place, {
          childList: true,
          subtree: true,
          characterData: true,
        });
      }
    });
    await ask(page, "count 100");
    await page.locator(".arp-spoken p").first().waitFor({ state: "attached" });
    const lines = await page.evaluate(() => (globalThis as unknown as { lines: string[] }).lines);
    expect(lines.length).toBeLessThanOrEqual(4);
    expect(lines[0]).toBe("Answering");
    expect(lines).toContain("Answer complete");
  });

  test("W65 W66 keys move between messages and regions, and open and close the list of keys", async () => {
    await begin();
    await ask(page, "hello");
    await box(page).focus();
    await page.keyboard.press("Alt+ArrowUp");
    expect(await page.evaluate(() => document.activeElement?.getAttribute("aria-label"))).toBe("Agent said");
    await page.keyboard.press("Alt+ArrowUp");
    expect(await page.evaluate(() => document.activeElement?.getAttribute("aria-label"))).toBe("You said");
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
    await page.keyboard.press("Escape");
    expect(await page.evaluate(() => document.activeElement?.getAttribute("aria-label"))).toBe("You said");
    await page.keyboard.press("/");
    expect(await page.evaluate(() => document.activeElement?.localName)).toBe("textarea");
    await page.keyboard.press("F6");
    expect(await page.evaluate(() => document.activeElement?.closest(".page-side") !== null)).toBe(true);
  });
});

describe("looks", () => {
  test("W68 at 320 pixels nothing scrolls sideways", async () => {
    await begin({ viewport: { width: 320, height: 640 } });
    await ask(page, "mixed");
    await page.locator("arp-table table").waitFor();
    expect(
      await page.evaluate(() => [
        document.documentElement.scrollWidth,
        (document.querySelector(".arp-scroller")?.scrollWidth ?? 999) <= 320,
      ]),
    ).toEqual([320, true]);
  });

  test("W69 with reduced motion nothing moves", async () => {
    await begin();
    await say(page, "count 100");
    await page.locator("arp-message[data-status=running]").waitFor();
    expect(
      await page.evaluate(
        () =>
          document
            .getAnimations()
            .filter((animation) => Number(animation.effect?.getComputedTiming().duration ?? 0) > 0).length,
      ),
    ).toBe(0);
  });

  test("W70 the theme is stored, and the same in another tab", async () => {
    await begin({ colorScheme: "light" });
    const other = await page.context().newPage();
    await other.goto(server.url);
    await page.getByRole("button", { name: "Settings" }).click();
    await page.getByRole("menuitemradio", { name: "Dark" }).click();
    const ground = (where: Page) =>
      where.locator("arp-chat").evaluate((chat) => getComputedStyle(chat).backgroundColor);
    expect(await ground(page)).toBe("rgb(20, 22, 24)");
    await expect.poll(() => ground(other)).toBe("rgb(20, 22, 24)");
    await page.reload();
    expect(await ground(page)).toBe("rgb(20, 22, 24)");
  });

  test("W71 W72 another language changes every text, and the direction of the page if it is written from right to left", async () => {
    await begin();
    await page.getByRole("button", { name: "Settings" }).click();
    await page.getByRole("menuitemradio", { name: "العربية" }).click();
    await page.getByRole("button", { name: "الإعدادات" }).waitFor();
    expect(await page.evaluate(() => [document.documentElement.dir, document.documentElement.lang])).toEqual([
      "rtl",
      "ar",
    ]);
    await ask(page, "hello");
    const bubble = await page.locator(".arp-bubble").boundingBox();
    expect((bubble?.x ?? 999) < 500).toBe(true);
  });

  test("W73 on a phone the list is a drawer, fields are 16 pixels, targets 44", async () => {
    await begin({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
    expect(await page.locator(".page-side").isVisible()).toBe(false);
    await page.locator(".page-menu").tap();
    await page.locator(".page-side").waitFor();
    await page.keyboard.press("Escape");
    await page.locator(".page-side").waitFor({ state: "hidden" });
    expect(await box(page).evaluate((element) => getComputedStyle(element).fontSize)).toBe("16px");
    const sizes = await page
      .locator(".page-head button, .page-head a, .arp-composer button:visible")
      .evaluateAll((all) =>
        all.map((one) => Math.min(one.getBoundingClientRect().width, one.getBoundingClientRect().height)),
      );
    expect(Math.min(...sizes)).toBeGreaterThanOrEqual(44);
  });

  test("W74 a print has all messages, without the message box and the list", async () => {
    await begin();
    await ask(page, "count 60");
    await page.emulateMedia({ media: "print" });
    for (const name of [".page-side", ".page-head", "arp-composer"])
      expect(await page.locator(name).isVisible(), name).toBe(false);
    expect(
      await page.locator(".arp-scroller").evaluate((element) => element.scrollHeight <= element.clientHeight + 1),
    ).toBe(true);
    const pdf = await page.pdf();
    expect(pdf.length).toBeGreaterThan(5000);
  });
});

describe("harm", () => {
  test("W76 W77 W79 text of an agent runs nothing and fetches nothing", async () => {
    await begin();
    await ask(page, "hostile");
    await log(page).getByText("bank.example").waitFor();
    expect(await page.title()).toBe("Harbour");
    expect(await page.locator(".arp-reply :is(script, img, iframe, object, embed)").count()).toBe(0);
    expect(
      await page.locator(".arp-reply a").evaluateAll((all) => all.map((link) => link.getAttribute("href"))),
    ).toEqual(["https://evil.example/login"]);
    const handlers = await page
      .locator(".arp-reply *")
      .evaluateAll((all) => all.flatMap((one) => one.getAttributeNames().filter((name) => /^on|srcdoc/.test(name))));
    expect(handlers).toEqual([]);
  });
});
