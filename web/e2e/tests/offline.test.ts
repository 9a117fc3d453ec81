/** A server that is unreachable for a long time, and the events that reconnect (webui.md W8). */

import type { Page } from "playwright-core";
import { afterEach, beforeEach, expect, test } from "vitest";

import { CuttingProxy } from "../../core/tests/cutting_proxy.js";
import { ask, log, online, open, say, type Faults } from "../src/host.js";
import { browser, server, useServer } from "../src/stage.js";

let proxy: CuttingProxy;
let page: Page;
let faults: Faults;

useServer();
beforeEach(async () => {
  proxy = new CuttingProxy(server.url, () => null);
  await proxy.start();
});
afterEach(async () => {
  await page.context().close();
  await proxy.stop();
  // The browser logs each failed attempt to connect.
  expect(
    faults.lines.filter(
      (line) => !/net::ERR_(?:CONNECTION_REFUSED|INTERNET_DISCONNECTED|INCOMPLETE_CHUNKED_ENCODING)/.test(line),
    ),
  ).toEqual([]);
});

/** Open the page; before each attempt it waits for this part of the longest delay. */
async function begin(part: number, hasSockets: boolean): Promise<void> {
  ({ page, faults } = await open(browser, proxy.url));
  await page.addInitScript(
    (given) => {
      Math.random = () => given.part;
      if (!given.hasSockets) Object.assign(globalThis, { WebSocket: undefined });
    },
    { part, hasSockets },
  );
  await page.reload();
  await online(page);
}

const banner = (text: string | RegExp) => page.locator("arp-banner", { hasText: text });

test("W8 after the last attempt the page says so and keeps messages; network, focus and button reconnect at once", async () => {
  await begin(0, false); // a browser delays new sockets of a page after failed ones
  await ask(page, "before");
  const hopes: [text: string, act: () => Promise<unknown>][] = [
    ["by the network", () => page.context().setOffline(false)],
    ["by a look", () => page.evaluate(() => dispatchEvent(new Event("focus")))],
    ["by the button", () => banner("Offline").getByRole("button", { name: "Try again" }).click()],
  ];
  for (const [text, act] of hopes) {
    if (text === "by the network") await page.context().setOffline(true);
    await proxy.stop();
    await banner("Offline. Your text is safe.").waitFor();
    expect(await page.locator(".page-link").innerText()).toBe("Not connected");
    await say(page, text);
    await page.locator(".arp-outgoing", { hasText: text }).getByText("Waiting for the connection").waitFor();
    await proxy.start();
    await act();
    await log(page).getByText(`You said: ${text}`).waitFor();
    await online(page);
    expect(await banner("Offline").count()).toBe(0);
  }
  expect(await page.locator(".arp-bubble").allInnerTexts()).toEqual(["before", ...hopes.map(([text]) => text)]);
});

test("W8 a wait of many seconds ends at once when the network returns or the page becomes visible", async () => {
  await begin(1, true);
  await ask(page, "before");
  for (const event of ["online", "focus", "visibilitychange"]) {
    await proxy.stop();
    await banner(/\(attempt (?:[2-9]|\d\d)\)/).waitFor({ timeout: 20_000 });
    await proxy.start();
    const took = await page.evaluate(async (name) => {
      const began = performance.now();
      (name === "visibilitychange" ? document : globalThis).dispatchEvent(new Event(name));
      while (!document.querySelector('.page-link[data-phase="online"]'))
        await new Promise((resolve) => setTimeout(resolve, 10));
      return performance.now() - began;
    }, event);
    expect(took, event).toBeLessThan(1500);
  }
  await ask(page, "after");
});
