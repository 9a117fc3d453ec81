/** A printed chat: all of its content fits the width of the sheet. */

import { fileURLToPath } from "node:url";

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import { ArpServer, ask, launch, open } from "../src/host.js";

const LIGHTHOUSE = fileURLToPath(new URL("../chats_app.py", import.meta.url));
/** Printable area of an A4 sheet in portrait with margins of 1 cm, in pixels. */
const SHEET = { width: 718, height: 1047 };

let browser: Browser;
let server: ArpServer;
beforeAll(async () => {
  browser = await launch();
  server = await ArpServer.start(LIGHTHOUSE);
});
afterAll(async () => {
  await browser?.close();
  await server?.stop();
});

/** Lay the page out as for printing. */
async function onPaper(page: Page): Promise<void> {
  await page.setViewportSize(SHEET);
  await page.emulateMedia({ media: "print" });
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
}

test.each([
  ["wide", { width: 1600, height: 900 }],
  ["narrow", { width: 390, height: 844 }],
])(
  "every column is on the sheet, charts are drawn for it, and no tooltip shows; from a %s window",
  async (_name, viewport) => {
    const { page } = await open(browser, server.url, { viewport });
    await ask(page, "print");
    await page.locator("arp-chart svg").first().waitFor();
    await page.locator(".arp-chart-place").hover();
    await page.locator(".arp-tip").waitFor();
    const before = await page.locator(".arp-chart-place > svg").getAttribute("width");
    await onPaper(page);
    const seen = await page.evaluate(() => ({
      beyond: [...document.querySelectorAll("arp-chat :is(th, td, svg, pre, figure)")]
        .filter((one) => one.getClientRects().length > 0 && one.getBoundingClientRect().right > innerWidth + 1)
        .map((one) => one.textContent),
      heads: [...document.querySelectorAll(".arp-log table")].map(
        (table) => [...table.querySelectorAll("th")].filter((one) => one.getBoundingClientRect().width > 10).length,
      ),
      rows: [...document.querySelectorAll("arp-table")].map((table) => table.querySelectorAll("tbody tr").length),
      cut: [...document.querySelectorAll(".arp-log :is(th, td)")].filter((one) => one.scrollWidth > one.clientWidth + 1)
        .length,
      chart: Number(document.querySelector(".arp-chart-place > svg")?.getAttribute("width")),
      drawn: document.querySelector(".arp-chart-place > svg")?.getBoundingClientRect().width ?? 0,
      tips: [...document.querySelectorAll(".arp-tip, .arp-cross, .arp-icon-button, arp-composer")].filter(
        (one) => one.getClientRects().length > 0,
      ).length,
    }));
    expect(seen.beyond).toEqual([]);
    expect(seen.heads).toEqual([9, 9, 24, 9]);
    expect(seen.rows).toEqual([4, 300, 3]);
    expect(seen.cut).toBe(0);
    expect(seen.tips).toBe(0);
    expect(seen.chart / seen.drawn).toBeGreaterThan(0.85);
    expect(seen.chart / seen.drawn).toBeLessThan(1.15);
    await page.setViewportSize(viewport);
    await page.emulateMedia({ media: "screen" });
    await page.evaluate(() => dispatchEvent(new Event("afterprint")));
    await expect.poll(() => page.locator(".arp-chart-place > svg").getAttribute("width")).toBe(before);
    await page.context().close();
  },
);

test("the browser's PDF has a chart drawn for the sheet, and the window has the normal chart afterwards", async () => {
  const { page } = await open(browser, server.url, { viewport: { width: 1440, height: 900 } });
  await ask(page, "print");
  await page.locator(".arp-chart-place > svg").waitFor();
  await page.evaluate(() => {
    const widthNow = () => document.querySelector(".arp-chart-place > svg")?.getAttribute("width");
    Object.assign(globalThis, { widths: [widthNow()] });
    addEventListener("beforeprint", () => (globalThis as unknown as { widths: unknown[] }).widths.push(widthNow()));
  });
  const pdf = await page.pdf({ format: "A4" });
  expect(pdf.byteLength).toBeGreaterThan(10_000);
  const [shown, printed] = await page.evaluate(() => (globalThis as unknown as { widths: string[] }).widths);
  expect(printed).toBe("640");
  expect(shown).not.toBe("640");
  await expect.poll(() => page.locator(".arp-chart-place > svg").getAttribute("width")).toBe(shown);
  await page.context().close();
});
