/** The panel beside the conversation: alignment of the message box, title, closing, opening, width. */

import { fileURLToPath } from "node:url";

import type { Browser, BrowserContextOptions, Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";

import { ArpServer, ask, box, launch, online, open, say, type Faults } from "../src/host.js";

const SIDE_APP = fileURLToPath(new URL("../side_app.py", import.meta.url));

let server: ArpServer;
let browser: Browser;
let page: Page;
let faults: Faults;

beforeAll(async () => {
  server = await ArpServer.start(SIDE_APP);
  browser = await launch();
});
afterAll(async () => {
  await browser?.close();
  await server?.stop();
});
afterEach(async () => {
  await page.context().close();
  expect(faults.lines).toEqual([]);
});

async function begin(width: number, options: BrowserContextOptions = {}): Promise<void> {
  ({ page, faults } = await open(browser, server.url, { viewport: { width, height: 800 }, ...options }));
}

const panel = (): Locator => page.locator(".arp-side");
const border = (): Locator => page.getByRole("separator", { name: "Resize the side panel" });
const opener = (): Locator => page.getByRole("button", { name: /^Show the side panel: / });

/** Return the left and right edge of an element's content box. */
const edges = (selector: string): Promise<[left: number, right: number]> =>
  page
    .locator(selector)
    .first()
    .evaluate((element) => {
      const { left, right } = element.getBoundingClientRect();
      const { paddingLeft, paddingRight } = getComputedStyle(element);
      return [left + Number.parseFloat(paddingLeft), right - Number.parseFloat(paddingRight)];
    });

async function expectLinedUp(): Promise<void> {
  const [text, written] = [await edges(".arp-column"), await edges(".arp-dock-column")];
  expect(Math.abs(text[0] - written[0]), `left of the text ${text[0]}, of the box ${written[0]}`).toBeLessThanOrEqual(
    1,
  );
  expect(Math.abs(text[1] - written[1]), `right of the text ${text[1]}, of the box ${written[1]}`).toBeLessThanOrEqual(
    1,
  );
}

const width = async (): Promise<number> => (await panel().boundingBox())?.width as number;

test.each([960, 1100, 1440, 1920])(
  "the message box lines up with the conversation, in a window of %d pixels",
  async (wide) => {
    await begin(wide);
    await ask(page, "side");
    await panel().waitFor();
    await expectLinedUp();
    const [, right] = await edges(".arp-dock-column");
    expect(right).toBeLessThanOrEqual((await panel().boundingBox())?.x as number);
    await border().press("End");
    await expectLinedUp();
    await page.getByRole("button", { name: "Close: Build status" }).click();
    await expectLinedUp();
  },
);

test("the panel has the title of its only surface, or its own if there are several", async () => {
  await begin(1440);
  await ask(page, "side");
  const title = panel().getByRole("heading", { level: 2 });
  expect(await title.innerText()).toBe("Build status");
  expect(await page.getByRole("region", { name: "Build status" }).count()).toBe(1);
  await ask(page, "second");
  await title.filter({ hasText: "Side panel" }).waitFor();
  expect(await panel().locator(".arp-surface-head > h3").allInnerTexts()).toEqual(["Build status"]);
});

test("after closing by button or Escape, a button has the focus and opens the panel again", async () => {
  await begin(1440);
  await ask(page, "side");
  await page.getByRole("button", { name: "Close: Build status" }).click();
  await opener().waitFor();
  expect(await panel().count()).toBe(0);
  expect(await opener().evaluate((element) => element === document.activeElement)).toBe(true);
  await page.keyboard.press("Enter");
  await panel().waitFor();
  expect(await page.locator(".arp-side-body").evaluate((element) => element === document.activeElement)).toBe(true);
  await page.keyboard.press("Escape");
  await opener().waitFor();
  expect(await opener().evaluate((element) => element === document.activeElement)).toBe(true);
});

test("the panel stays closed over changes and a reload, and opens for new components and questions", async () => {
  await begin(1440);
  await ask(page, "side");
  await page.getByRole("button", { name: "Close: Build status" }).click();
  await ask(page, "change red");
  expect(await panel().count()).toBe(0);
  await page.reload();
  await online(page);
  await opener().waitFor();
  expect(await panel().count()).toBe(0);
  await ask(page, "more 1");
  await panel().getByText("More: 1").waitFor();
  await page.getByRole("button", { name: "Close: Build status" }).click();
  await say(page, "ask");
  await panel().getByText("Which way?").waitFor();
  await panel().getByText("left").click();
  await page.locator("arp-message").getByText("You took left.").waitFor();
});

test("the panel is resized by keys and pointer within limits; the width is stored, and a double click resets it", async () => {
  await begin(1440);
  await ask(page, "side");
  await panel().waitFor();
  expect(await width()).toBe(384);
  expect(await border().getAttribute("aria-valuenow")).toBe("384");
  await border().press("ArrowLeft");
  expect(await width()).toBe(400);
  await border().press("ArrowRight");
  await border().press("ArrowRight");
  expect(await width()).toBe(368);
  await border().press("Home");
  expect([await width(), await border().getAttribute("aria-valuemin")]).toEqual([256, "256"]);
  await border().press("End");
  expect(String(await width())).toBe(await border().getAttribute("aria-valuemax"));
  const { x, y, width: wide } = (await border().boundingBox()) as { x: number; y: number; width: number };
  const from = x + wide / 2;
  await page.mouse.move(from, y + 200);
  await page.mouse.down();
  await page.mouse.move(from + 60, y + 200);
  await page.mouse.move(from + 120, y + 210);
  await page.mouse.up();
  const most = Number(await border().getAttribute("aria-valuemax"));
  expect(await width()).toBe(most - 120);
  await page.reload();
  await online(page);
  await panel().waitFor();
  expect(await width()).toBe(most - 120);
  await border().dblclick();
  expect(await width()).toBe(384);
  await page.reload();
  await online(page);
  await panel().waitFor();
  expect(await width()).toBe(384);
});

test("from right to left the panel is on the left, and an arrow key moves the border in its direction", async () => {
  await begin(1440, { locale: "ar" });
  await ask(page, "side");
  await panel().waitFor();
  const separator = page.locator(".arp-side-border");
  expect((await panel().boundingBox())?.x).toBeLessThan(400);
  await expectLinedUp();
  await separator.press("ArrowRight");
  expect(await width()).toBe(400);
  const { x, y, width: wide } = (await separator.boundingBox()) as { x: number; y: number; width: number };
  await page.mouse.move(x + wide / 2, y + 100);
  await page.mouse.down();
  await page.mouse.move(x + wide / 2 - 50, y + 100);
  await page.mouse.up();
  expect(await width()).toBe(350);
});

test("touch moves the border too", async () => {
  await begin(1440, { hasTouch: true });
  await ask(page, "side");
  await panel().waitFor();
  const { x, y, width: wide } = (await border().boundingBox()) as { x: number; y: number; width: number };
  const session = await page.context().newCDPSession(page);
  const touch = (type: string, by: number) =>
    session.send("Input.dispatchTouchEvent", {
      type: type as "touchStart",
      touchPoints: type === "touchEnd" ? [] : [{ x: x + wide / 2 - by, y: y + 300 }],
    });
  await touch("touchStart", 0);
  await touch("touchMove", 20);
  await touch("touchMove", 40);
  await touch("touchEnd", 40);
  expect(await width()).toBe(424);
});

test("on a phone the panel is a bar that opens it over the chat; it has no border and never opens by itself", async () => {
  await begin(390);
  await ask(page, "side");
  await opener().waitFor();
  expect(await panel().count()).toBe(0);
  expect(await page.locator(".arp-side-mark").count()).toBe(1);
  await opener().click();
  const over = (await page.locator("arp-side-panel").boundingBox()) as { width: number; height: number };
  const chat = (await page.locator("arp-chat").boundingBox()) as { width: number; height: number };
  expect([over.width, over.height]).toEqual([chat.width, chat.height]);
  expect(await page.locator(".arp-side-border").count()).toBe(0);
  expect(await box(page).evaluate((element) => element.closest("[inert]") !== null)).toBe(true);
  await page.getByRole("button", { name: "Close: Build status" }).click();
  await opener().waitFor();
  expect(await page.locator(".arp-side-mark").count()).toBe(0);
  expect(await box(page).evaluate((element) => element.closest("[inert]") !== null)).toBe(false);
  await say(page, "ask");
  await page.getByText("The agent is waiting for your answer").and(page.locator(".arp-side-told")).waitFor();
  expect(await panel().count()).toBe(0);
  await opener().click();
  await panel().getByText("right").click();
  await page.keyboard.press("Escape");
  await page.locator("arp-message").getByText("You took right.").waitFor();
});

test("a chat without a panel has the full width and its message box, also after an open panel", async () => {
  await begin(390);
  await ask(page, "side");
  await opener().click();
  await panel().waitFor();
  await page.getByRole("link", { name: "New chat" }).click();
  await page.locator(".arp-welcome").waitFor();
  expect(await page.locator("arp-side-panel").count()).toBe(0);
  expect(await box(page).evaluate((element) => element.closest("[inert]") !== null)).toBe(false);
});
