/**
 * Views of the page in both themes and both directions, compared with the images in `golden/`.
 * `ARP_GOLDEN=write` writes the images; look at them before you commit them.
 */

import { readdirSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";

import type { BrowserContextOptions, Page } from "playwright-core";
import { afterEach, describe, expect, test } from "vitest";

import { createSessionAPI } from "../../core/src/index.js";
import { apart } from "../src/golden.js";
import { ask, box, log, open, say, type Faults } from "../src/host.js";
import { browser, server, useServer } from "../src/stage.js";

const FOLDER = fileURLToPath(new URL("../golden/", import.meta.url));
/** Window of a phone; at three quarters of its size, an image has whole pixels too. */
const PHONE = { viewport: { width: 392, height: 844 }, hasTouch: true } as const;
/** Largest part of the pixels that may differ. */
const MOST_DIFFERENT = 0.002;
const MOST_BYTES = 3_500_000;

/** A view: the steps that lead to it, and the window. */
interface View {
  readonly options?: BrowserContextOptions;
  show(page: Page): Promise<unknown>;
}

const VIEWS: Record<string, View> = {
  welcome: { show: async () => undefined },
  answer: {
    show: async (page) => {
      await ask(page, "tides");
      await page.locator("[class^=arp-k-]").first().waitFor();
    },
  },
  activity: {
    show: async (page) => {
      await ask(page, "mixed");
      await page.locator("arp-table table").waitFor();
      await page.locator(".arp-step summary, .arp-step button").first().click();
      await page.locator(".arp-step dl").waitFor();
    },
  },
  permission: {
    show: async (page) => {
      await say(page, "permission");
      await page.locator(".arp-permission dl").waitFor();
    },
  },
  failure: {
    show: async (page) => {
      await ask(page, "tools");
      await ask(page, "fail");
    },
  },
  line: {
    show: async (page) => {
      await ask(page, "choices");
      await say(page, "confirm");
      await page.locator("arp-confirm button").first().waitFor();
      await say(page, "What is said while the agent waits stands in line.");
      await page.locator(".arp-log arp-message[data-status=queued]").waitFor();
      await box(page).fill("A draft\nof two lines");
    },
  },
  commands: {
    show: async (page) => {
      await ask(page, "table");
      await page.locator("arp-table table").waitFor();
      await box(page).pressSequentially("/ex");
      await page.getByRole("listbox").waitFor();
    },
  },
  settings: {
    show: async (page) => {
      await page.locator(".page-head arp-menu button").first().click();
      await page.getByRole("menu").waitFor();
    },
  },
  keys: {
    show: async (page) => {
      await page.locator(".arp-suggestion, .arp-welcome button").first().focus();
      await page.keyboard.press("?");
      await page.getByRole("dialog").waitFor();
    },
  },
  phone: {
    options: PHONE,
    show: async (page) => {
      await ask(page, "mixed");
      await page.locator("arp-table table").waitFor();
    },
  },
  drawer: {
    options: PHONE,
    show: async (page) => {
      await ask(page, "hello");
      await page.locator(".page-menu").click();
      await page.locator(".page-side a").first().waitFor();
    },
  },
};

useServer();

/** Delete all chats, because their list is in every image. */
async function forget(): Promise<void> {
  const api = createSessionAPI(server.url);
  for (const { id } of await api.listSessions("")) await api.deleteSession(id);
}

/** Remove the parts that depend on the time: durations and times. */
async function still(page: Page): Promise<void> {
  await page.waitForFunction(() =>
    [...document.querySelectorAll(".arp time")].every(({ textContent }) => textContent?.trim()),
  );
  await page.evaluate(async () => {
    await document.fonts.ready;
    for (const one of document.querySelectorAll<HTMLElement>("arp-elapsed, .arp-took, time"))
      one.style.visibility = "hidden";
  });
  await page.mouse.move(1, 1);
  let before = "";
  await expect
    .poll(async () => {
      const now = (await page.screenshot({ animations: "disabled", caret: "hide" })).toString("base64");
      const isSame = now === before;
      before = now;
      return isSame;
    })
    .toBe(true);
}

describe.each([
  ["light", "en-GB"],
  ["dark", "en-GB"],
  ["light", "ar"],
  ["dark", "ar"],
] as const)("%s, %s", (colorScheme, locale) => {
  let page: Page;
  let faults: Faults;

  afterEach(async () => {
    await page.context().close();
    await forget();
    expect(faults.lines).toEqual([]);
  });

  test.each(Object.keys(VIEWS))("the view matches its golden image: %s", async (name) => {
    const { options, show } = VIEWS[name] as View;
    ({ page, faults } = await open(browser, server.url, {
      viewport: { width: 1000, height: 700 },
      deviceScaleFactor: 0.75,
      colorScheme,
      locale,
      ...options,
    }));
    await show(page);
    await log(page).waitFor({ state: "attached" });
    if ((await page.locator("arp-message").count()) > 0)
      await page.locator(".arp-session").first().waitFor({ state: "attached" });
    await still(page);
    const shot = await page.screenshot({ animations: "disabled", caret: "hide" });
    const blank = await page.context().newPage();
    const part = await apart(blank, `${FOLDER}${name}-${colorScheme}-${locale === "ar" ? "rtl" : "ltr"}.png`, shot);
    if (part === null && !process.env.CI)
      console.log(`${name}: other letters than those of the pictures; not compared`);
    else expect(part).toBeLessThan(MOST_DIFFERENT);
  });
});

test("the pictures stay small", () => {
  const bytes = readdirSync(FOLDER).reduce((sum, name) => sum + statSync(FOLDER + name).size, 0);
  expect(bytes).toBeLessThan(MOST_BYTES);
});
