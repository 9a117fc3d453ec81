/**
 * Connections are cut at random moments, a page is reloaded, there are two tabs, and one has a twentieth of the
 * speed. In the end each shows the same as a page that stayed connected.
 */

import type { BrowserContext, Page } from "playwright-core";
import { describe, expect, test } from "vitest";

import { CuttingProxy, seeded, type Moment } from "../../core/tests/cutting_proxy.js";
import { ask, online, open, say, shape } from "../src/host.js";
import { browser, server, useServer } from "../src/stage.js";

const CUTS = Number(process.env.ARP_CUTS ?? 50);
/** Seed, a new one for each run; it is printed, and `ARP_SEED` repeats the run. */
const SEED = Number(process.env.ARP_SEED ?? Date.now() % 1_000_000);
const SCRIPT = ["hello", "mixed", "count 80", "confirm", "tools", "swap 40", "burst 400 400"];
/** Largest number of turns, at most that of a snapshot: older turns would not be on every page. */
const MOST_TURNS = 49;

/** Number of code blocks in `long.md`, all of them Python. */
const CODES_OF_BURST = 28;

useServer();

/** Return a moment: half of the cuts are after a number of bytes, inside frames and catch-ups, half after a time. */
function moment(draw: () => number): Moment {
  return draw() < 0.5 ? { bytes: 150 + draw() ** 2 * 20_000 } : { ms: 20 + draw() * 600 };
}

/** Return a browser with pages that use one transport and reconnect without a delay. */
async function shaky(isSse: boolean): Promise<BrowserContext> {
  const context = await browser.newContext({ viewport: { width: 1000, height: 700 }, reducedMotion: "reduce" });
  context.setDefaultTimeout(15_000);
  await context.addInitScript((withoutSockets: boolean) => {
    Math.random = () => 0;
    const fetched = fetch;
    Object.assign(
      globalThis,
      withoutSockets
        ? { WebSocket: undefined }
        : {
            fetch: (url: string, init?: RequestInit) =>
              url.includes("/_arp/v1/events") ? Promise.reject(new TypeError("by sockets alone")) : fetched(url, init),
          },
    );
  }, isSse);
  return context;
}

async function opened(context: BrowserContext, url: string): Promise<Page> {
  const page = await context.newPage();
  await page.goto(url);
  await online(page);
  return page;
}

/** Wait until a number of turns have ended and all of them are drawn. */
async function waitUntilDrawn(page: Page, turns: number): Promise<void> {
  await page.waitForFunction(
    (wanted) => {
      const log = document.querySelector("arp-chat .arp-log");
      const over = log?.querySelectorAll("arp-message[data-status=completed]").length;
      const isBusy = [...(log?.querySelectorAll("arp-prose") ?? [])].some(
        (prose) => (prose as unknown as { busy: boolean }).busy,
      );
      return over === wanted && !isBusy && !log?.querySelector(":not(:defined), .arp-outgoing");
    },
    turns,
    { timeout: 60_000 },
  );
}

/** Return the content of the page in pieces, so that a difference can be located. */
const pieces = async (page: Page): Promise<string[]> => (await shape(page)).split(/(?=<(?:arp-|h\d|p>|li>|pre))/);

/** Return the number of code blocks, and the number of those with colours. */
function colours(page: Page): Promise<number[]> {
  return page
    .locator("arp-chat .arp-log")
    .evaluate((log) => ["arp-code", "arp-code:has([class^=arp-k-])"].map((name) => log.querySelectorAll(name).length));
}

/** Return the id of the chat that a page has begun; another page can only open an existing chat. */
const sessionOf = (page: Page): Promise<string> =>
  page.evaluate(() => document.querySelector("arp-chat")?.activeClient?.store.status.get().sessionId ?? "");

describe.each([
  ["WebSocket", "websocket", 1],
  ["SSE", "sse", 2],
] as const)("over %s", (name, transport, salt) => {
  test(`W7 W58 ${CUTS} cuts, reloads and a second tab show what one shows that never left`, async () => {
    const draw = seeded(SEED + salt * 7919);
    let isCutting = false;
    const proxy = new CuttingProxy(server.url, () => (isCutting ? moment(draw) : null));
    await proxy.start();
    const { page: steady } = await open(browser, server.url);
    const session = await sessionOf(steady);
    const context = await shaky(transport === "sse");
    const writer = await opened(context, `${proxy.url}/?session=${session}`);
    const onlooker = await opened(context, `${proxy.url}/?session=${session}`);
    isCutting = true;
    for (const page of [writer, onlooker]) {
      await page.evaluate(() => {
        const client = document.querySelector("arp-chat")?.activeClient;
        client?.disconnect();
        client?.connect(); // on a connection that can be cut
      });
    }
    const sent: string[] = [];
    let reloads = 0;
    const began = performance.now();
    while (sent.length < MOST_TURNS && (proxy.cuts < CUTS || sent.length < SCRIPT.length)) {
      const text = SCRIPT[sent.length % SCRIPT.length] as string;
      const isOver = steady
        .locator("arp-message")
        .nth(sent.push(text) - 1)
        .and(steady.locator("[data-status=completed]"));
      await say(sent.length % 2 === 0 ? writer : steady, text);
      if (text === "confirm")
        await onlooker.locator(".arp-log arp-message").last().getByRole("button", { name: "Do it" }).click();
      if (draw() < 0.4) {
        reloads += 1;
        await writer.reload({ waitUntil: "commit" });
      }
      await isOver.waitFor({ state: "attached", timeout: 20_000 });
    }
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    console.log(
      `${name}: seed ${SEED}, ${proxy.cuts} cuts and ${reloads} reloads in ${sent.length} turns, ${seconds} s`,
    );
    expect(proxy.cuts).toBeGreaterThanOrEqual(CUTS);
    proxy.rest();
    await waitUntilDrawn(steady, sent.length);
    expect(await steady.locator(".arp-bubble").allTextContents()).toEqual(sent);
    const expected = await pieces(steady);
    const codes = sent.filter((text) => text.startsWith("burst")).length * CODES_OF_BURST;
    for (const page of [steady, writer, onlooker]) {
      await waitUntilDrawn(page, sent.length);
      await expect.poll(() => pieces(page)).toEqual(expected);
      await expect.poll(() => colours(page), { timeout: 20_000 }).toEqual([codes, codes]);
    }
    for (const page of [writer, onlooker]) {
      await expect
        .poll(
          () => page.evaluate(() => document.querySelector("arp-chat")?.activeClient?.store.status.get().transport),
          { timeout: 20_000 },
        )
        .toBe(transport);
    }
    await context.close();
    await steady.context().close();
    await proxy.stop();
  }, 240_000);
});

test("W21 a tab with a twentieth of the speed skips commits, never shows half of one, and ends with the same screen", async () => {
  const { page: steady } = await open(browser, server.url);
  const session = await sessionOf(steady);
  const { page: slow } = await open(browser, `${server.url}/?session=${session}`);
  const cdp = await slow.context().newCDPSession(slow);
  await cdp.send("Emulation.setCPUThrottlingRate", { rate: 20 });
  await slow.evaluate(() => {
    const seen = { halves: [] as string[], shown: new Set<string>() };
    Object.assign(globalThis, { seen });
    new MutationObserver(() => {
      const titles = [...document.querySelectorAll("arp-status-card .arp-title")].map(({ textContent }) =>
        (textContent ?? "").replace(/\D/g, ""),
      );
      if (titles.length === 2) seen.shown.add(titles[0] as string);
      if (titles.length === 1 || (titles.length === 2 && titles[0] !== titles[1])) seen.halves.push(titles.join(" "));
    }).observe(document.body, { subtree: true, childList: true, characterData: true });
  });
  await ask(steady, "swap 300");
  await waitUntilDrawn(steady, 1);
  await waitUntilDrawn(slow, 1);
  await slow.locator("arp-status-card", { hasText: "300" }).nth(1).waitFor();
  const { halves, shown } = await slow.evaluate(() => {
    const { seen } = globalThis as unknown as { seen: { halves: string[]; shown: Set<string> } };
    return { halves: seen.halves, shown: seen.shown.size };
  });
  console.log(`slow tab: ${shown} of 301 states shown`);
  expect(halves).toEqual([]);
  expect(shown).toBeLessThan(301);
  expect(await shape(slow)).toBe(await shape(steady));
}, 120_000);
