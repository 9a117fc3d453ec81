/** Errors as sentences, their details, and the ring around the focused element. */

import { fileURLToPath } from "node:url";

import type { Locator } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { CuttingProxy } from "../../core/tests/cutting_proxy.js";
import { APP, ArpServer, ask, online, open, say } from "../src/host.js";
import { begin, browser, page, server, usePages } from "../src/stage.js";

/** Return the contrast of an element's focus ring with the background around the element. */
const contrast = (place: Locator) =>
  place.evaluate((element) => {
    const canvas = new OffscreenCanvas(1, 1).getContext("2d") as OffscreenCanvasRenderingContext2D;
    const luminance = (colour: string) => {
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
      const [red, green, blue] = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((value) => {
        const part = value / 255;
        return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
      }) as [number, number, number];
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    let around: Element | null = element.parentElement;
    while (around !== null && getComputedStyle(around).backgroundColor === "rgba(0, 0, 0, 0)")
      around = around.parentElement;
    const ring = luminance(getComputedStyle(element).outlineColor);
    const ground = luminance(getComputedStyle(around as Element).backgroundColor);
    return (Math.max(ring, ground) + 0.05) / (Math.min(ring, ground) + 0.05);
  });

/** Return the rings that are drawn around the focused element: its own, and those of its ancestors. */
const rings = () =>
  page.evaluate(() => {
    const found: string[] = [];
    for (let element = document.activeElement; element !== null; element = element.parentElement) {
      const { outlineStyle, outlineWidth } = getComputedStyle(element);
      if (outlineStyle !== "none" && Number.parseFloat(outlineWidth) > 0)
        found.push(element.className || element.localName);
    }
    return found;
  });

describe("focus rings", () => {
  usePages();

  test.each(["light", "dark"] as const)("the search field has one visible ring, %s", async (colorScheme) => {
    await begin({ colorScheme });
    const search = page.getByRole("searchbox", { name: "Search chats" });
    await search.focus();
    expect(await rings()).toEqual(["arp-sessions-search"]);
    expect(await contrast(page.locator(".arp-sessions-search"))).toBeGreaterThanOrEqual(3);
    await page.emulateMedia({ forcedColors: "active" });
    expect(await rings()).toEqual(["arp-sessions-search"]);
    expect(
      await page.locator(".arp-sessions-search").evaluate((element) => getComputedStyle(element).outlineWidth),
    ).toBe("2px");
  });

  test("every field and button of the page has exactly one ring with keyboard focus", async () => {
    await begin();
    await ask(page, "table");
    await say(page, "form");
    await page.locator("arp-form input").first().waitFor();
    const seen = new Set<string>();
    await page.locator("body").press("Tab");
    for (let step = 0; step < 120; step += 1) {
      const at = await page.evaluate(() => {
        const { activeElement: element } = document;
        if (element === null || element === document.body) return null;
        return `${element.localName}.${element.className} ${element.getAttribute("aria-label") ?? ""}`;
      });
      if (at === null && step > 5) break;
      if (at !== null) {
        expect(await rings(), at).toHaveLength(1);
        seen.add(at.split(" ")[0] as string);
      }
      await page.keyboard.press("Tab");
    }
    expect([...seen].some((name) => name.startsWith("textarea"))).toBe(true);
    expect([...seen].filter((name) => name.startsWith("input")).length).toBeGreaterThan(1);
  });

  test("a file shows its size in bytes, in the right plural", async () => {
    await begin();
    await page
      .locator('arp-composer input[type="file"]')
      .setInputFiles({ name: "a.txt", mimeType: "text/plain", buffer: Buffer.alloc(78) });
    await page.locator(".arp-file", { hasText: "78 bytes" }).waitFor();
  });

  test("a refusal of the server is shown as a sentence", async () => {
    const strict = await ArpServer.start(`${APP}:strict`);
    try {
      await begin({ url: strict.url });
      await say(page, "count 300");
      await page.getByRole("button", { name: "Stop" }).waitFor();
      await say(page, "hello");
      const line = page.locator(".arp-outgoing .arp-bad > span");
      await line.waitFor();
      expect(await line.innerText()).toBe(
        "Not sent: A turn is running; wait for it, or stop it with action arp.cancel.",
      );
      await page.goto("about:blank"); // the browser would log each attempt to reconnect
    } finally {
      await strict.stop();
    }
  });
});

describe("a lost connection", () => {
  usePages();

  test("the banner counts down, and says that the text is safe", async () => {
    const proxy = new CuttingProxy(server.url, () => null);
    await proxy.start();
    const opened = await open(browser, proxy.url);
    await opened.page.addInitScript(() => (Math.random = () => 0.99));
    await opened.page.reload();
    await online(opened.page);
    await proxy.stop();
    const line = opened.page.locator("arp-banner", {
      hasText: /Reconnecting in \d+ s \(attempt \d+\)\. Your text is safe\./,
    });
    await line.waitFor();
    await opened.page.context().close();
    await begin(); // the page that is closed after each test
  });
});

describe("details of a failure", () => {
  const SIDE_APP = fileURLToPath(new URL("../side_app.py", import.meta.url));
  let plain: ArpServer;
  let debugging: ArpServer;
  usePages();
  beforeAll(async () => {
    plain = await ArpServer.start(SIDE_APP);
    debugging = await ArpServer.start(SIDE_APP, "--debug");
  });
  afterAll(async () => {
    await plain?.stop();
    await debugging?.stop();
  });

  test("with --debug the error has Details: named, monospaced, scrollable, copyable; and the turn can be tried again", async () => {
    await begin({ url: debugging.url });
    await ask(page, "fail");
    const card = page.locator(".arp-trouble");
    await card.locator("summary").waitFor();
    expect(await card.count()).toBe(1);
    expect(await card.locator("p").innerText()).toBe("The agent failed. The server's log has the reason.");
    expect(await card.locator("pre").isVisible()).toBe(false);
    await card.locator("summary", { hasText: "Details" }).press("Enter");
    const details = card.getByRole("region", { name: "Details" });
    expect(await details.innerText()).toMatch(
      /^Traceback \(most recent call last\):\n[\s\S]*RuntimeError: a secret of the server x+$/,
    );
    const { font, overflow, fits } = await details.evaluate((element) => {
      const style = getComputedStyle(element);
      return { font: style.fontFamily, overflow: style.overflowY, fits: element.scrollWidth <= element.clientWidth };
    });
    expect([font.includes("monospace"), overflow, fits]).toEqual([true, "auto", true]);
    await card.getByRole("button", { name: "Copy" }).click();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(await details.innerText());
    await card.getByRole("button", { name: "Try again" }).waitFor();
    await page.reload();
    await online(page);
    await card.waitFor();
    expect(await card.locator("details").count()).toBe(0);
  });

  test("without --debug there are no details", async () => {
    await begin({ url: plain.url });
    await ask(page, "fail");
    await page.locator(".arp-trouble").waitFor();
    expect(await page.locator(".arp-trouble details").count()).toBe(0);
    expect(await page.content()).not.toContain("a secret of the server");
  });
});
