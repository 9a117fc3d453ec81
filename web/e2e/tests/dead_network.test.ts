/** A network that fails with and without an error: the page reports it and loses nothing. */

import { mkdirSync } from "node:fs";
import type { Page } from "playwright-core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { CuttingProxy } from "../../core/tests/cutting_proxy.js";
import { ask, log, online, open, say } from "../src/host.js";
import { browser, server, useServer } from "../src/stage.js";

/** Time after which the page must no longer show that it is connected. */
const TRUTH_MS = 25_000;
/** Folder for screenshots of a failed network; none are written if it is not set. */
const SHOTS = process.env.ARP_SHOTS;

let proxy: CuttingProxy;
let page: Page;

useServer();
beforeEach(async () => {
  proxy = new CuttingProxy(server.url, () => null);
  await proxy.start();
});
afterEach(async () => {
  proxy.letGo();
  await page.context().close();
  await proxy.stop();
});

const link = () => page.locator(".page-link");
const away = () => page.locator('.page-link:not([data-phase="online"])');
const outgoing = (text: string) => page.locator(".arp-outgoing", { hasText: text });
const sentTexts = () => page.locator(".arp-bubble").allInnerTexts();

async function shot(name: string): Promise<void> {
  if (SHOTS === undefined) return;
  mkdirSync(SHOTS, { recursive: true });
  await page.screenshot({ path: `${SHOTS}/${name}.png` });
}

test("W8 if the browser is offline, the page says so at once, keeps messages, and reconnects at once", async () => {
  ({ page } = await open(browser, proxy.url));
  await ask(page, "before");
  await page.context().setOffline(true);
  await away().waitFor({ timeout: 1000 });
  await page.locator("arp-banner", { hasText: "Reconnecting" }).waitFor({ timeout: 2000 });
  await say(page, "meanwhile");
  await outgoing("meanwhile").getByText("Waiting for the connection").waitFor();
  await page.waitForTimeout(3000); // the message must not arrive later either
  expect(await link().innerText()).not.toBe("Connected");
  await page.context().setOffline(false);
  await page.locator('.page-link[data-phase="online"]').waitFor({ timeout: 3000 });
  await log(page).getByText("You said: meanwhile").waitFor();
  expect(await sentTexts()).toEqual(["before", "meanwhile"]);
});

describe.each([
  ["WebSocket", true],
  ["SSE", false],
] as const)("over %s", (name, hasSockets) => {
  test(
    "W8 a network that holds all bytes is detected within 25 s, and nothing is lost or repeated",
    { timeout: 120_000 },
    async () => {
      ({ page } = await open(browser, proxy.url));
      if (!hasSockets) {
        await page.addInitScript(() => Object.assign(globalThis, { WebSocket: undefined }));
        await page.reload();
        await online(page);
        await page.locator(".page-way", { hasText: "SSE" }).waitFor();
      }
      await ask(page, "before");
      await say(page, "toil 20");
      await page.locator(".arp-step[data-state=running] arp-elapsed", { hasText: "s" }).waitFor();
      await page.evaluate(() => {
        const status = document.querySelector(".arp-status") as HTMLElement;
        const lines: string[] = [];
        new MutationObserver(() =>
          lines.push(`${document.querySelector(".page-link")?.getAttribute("data-phase")}: ${status.textContent}`),
        ).observe(status, { childList: true, characterData: true, subtree: true });
        Object.assign(globalThis, { lines });
      });
      proxy.hold();
      const began = Date.now();
      await say(page, "meanwhile");
      await outgoing("meanwhile").getByText("Not delivered yet").waitFor({ timeout: 4000 });
      expect(await outgoing("meanwhile").getByText("Not delivered yet").isVisible()).toBe(true);
      await away().waitFor({ timeout: TRUTH_MS });
      const took = Date.now() - began;
      const reason = await page.evaluate(
        () => document.querySelector("arp-chat")?.activeClient?.store.status.get().reason,
      );
      console.log(`${name}: noticed after ${took} ms: ${reason}`);
      expect(took).toBeLessThan(TRUTH_MS);
      await page.locator("arp-banner .arp-banner").waitFor();
      await outgoing("meanwhile").getByText("Waiting for the connection").waitFor();
      expect(await page.locator(".arp-step[data-state=running] arp-elapsed").isVisible()).toBe(false); // the duration is unknown

      await page.waitForTimeout(Math.max(0, 30_000 - (Date.now() - began)));
      expect(await link().innerText()).not.toBe("Connected");
      await shot(`dead-network-30s-${hasSockets ? "websocket" : "sse"}`);
      proxy.letGo();
      await online(page);
      await log(page).getByText("You said: meanwhile").waitFor({ timeout: 20_000 });
      expect(await sentTexts()).toEqual(["before", "toil 20", "meanwhile"]);
      expect(await log(page).getByText("You said: meanwhile").count()).toBe(1);
      expect(await log(page).getByText("Found it.").count()).toBe(1);
      const lines = await page.evaluate(() => (globalThis as unknown as { lines: string[] }).lines);
      expect(lines.filter((line) => /Still working/.test(line) && !line.startsWith("online"))).toEqual([]);
    },
  );

  test("W8 a silent working connection stays open", { timeout: 90_000 }, async () => {
    ({ page } = await open(browser, proxy.url));
    if (!hasSockets) {
      await page.addInitScript(() => Object.assign(globalThis, { WebSocket: undefined }));
      await page.reload();
      await online(page);
    }
    await page.evaluate(() => {
      const phases: string[] = [];
      const link = document.querySelector("arp-link-state") as HTMLElement;
      new MutationObserver(() =>
        phases.push(link.querySelector(".page-link")?.getAttribute("data-phase") ?? ""),
      ).observe(link, { attributes: true, childList: true, subtree: true });
      Object.assign(globalThis, { phases });
    });
    await page.waitForTimeout(45_000);
    expect(await page.evaluate(() => (globalThis as unknown as { phases: string[] }).phases)).toEqual([]);
    await ask(page, "after");
  });
});

test("W8 a message that did not arrive before a reload is shown as not sent, and is sent once", async () => {
  ({ page } = await open(browser, proxy.url));
  await page.addInitScript(() => Object.assign(globalThis, { WebSocket: undefined }));
  await ask(page, "before");
  await page.route("**/_arp/v1/**", (route) => route.abort());
  await page.context().setOffline(true);
  await away().waitFor({ timeout: 1000 });
  await say(page, "meanwhile");
  await outgoing("meanwhile").waitFor();
  await page.context().setOffline(false);
  await page.reload();
  await outgoing("meanwhile").getByText("Waiting for the connection").waitFor();
  await page.unroute("**/_arp/v1/**");
  await log(page).getByText("You said: meanwhile").waitFor();
  expect(await sentTexts()).toEqual(["before", "meanwhile"]);
});
