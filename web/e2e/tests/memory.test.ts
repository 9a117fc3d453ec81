/** Memory of a page that stays open (webui.md W88). */

import type { CDPSession, Page } from "playwright-core";
import { expect, test } from "vitest";

import { ask, online, watched } from "../src/host.js";
import { browser, server, useServer } from "../src/stage.js";

const MB = 2 ** 20;
const SWITCHES = 100;
const STREAMS = 50;
const MOST_MB = 10;

useServer();

/** Count the pending timers; runs in the page before its scripts. */
function counting(): void {
  const timers = new Set<number>();
  Object.assign(globalThis, { timers });
  const { setTimeout: later, setInterval: always, clearTimeout: stop, clearInterval: end } = globalThis;
  globalThis.setTimeout = ((call: (...given: unknown[]) => void, ms?: number, ...given: unknown[]) => {
    const id = later(() => {
      timers.delete(id as unknown as number);
      call(...given);
    }, ms) as unknown as number;
    timers.add(id);
    return id;
  }) as never;
  globalThis.setInterval = ((call: () => void, ms?: number) => {
    const id = always(call, ms) as unknown as number;
    timers.add(id);
    return id;
  }) as never;
  globalThis.clearTimeout = ((id: number) => (timers.delete(id), stop(id))) as never;
  globalThis.clearInterval = ((id: number) => (timers.delete(id), end(id))) as never;
}

interface Held {
  /** Used JavaScript memory after a garbage collection. */
  readonly heapMb: number;
  readonly nodes: number;
  readonly listeners: number;
  readonly timers: number;
}

async function held(page: Page, devtools: CDPSession): Promise<Held> {
  await page.evaluate(
    () => new Promise((resolve) => (globalThis.requestIdleCallback ?? requestAnimationFrame)(resolve)),
  );
  for (let round = 0; round < 3; round += 1) await devtools.send("HeapProfiler.collectGarbage");
  const { metrics } = await devtools.send("Performance.getMetrics");
  const of = (name: string) => metrics.find((metric) => metric.name === name)?.value ?? NaN;
  const timers = await page.evaluate(() => (globalThis as unknown as { timers: Set<number> }).timers.size);
  return { heapMb: of("JSHeapUsedSize") / MB, nodes: of("Nodes"), listeners: of("JSEventListeners"), timers };
}

test(
  "W88 100 changes of the chat and 50 streams leave less than 10 MB, and no listener and no timer",
  { timeout: 300_000 },
  async () => {
    const context = await browser.newContext({ viewport: { width: 1100, height: 800 }, reducedMotion: "reduce" });
    context.setDefaultTimeout(15_000);
    const page = await context.newPage();
    const faults = watched(page, server.url);
    await page.addInitScript(counting);
    await page.goto(server.url);
    await online(page);
    const devtools = await context.newCDPSession(page);
    await devtools.send("Performance.enable");

    const NAMES = ["first", "second", "third"] as const;
    const chats = page.locator(".page-side nav a");
    const fresh = async () => {
      await page.locator(".page-new").click();
      await page.locator(".arp-welcome").waitFor();
      await online(page);
    };
    for (const name of NAMES) {
      await fresh();
      await ask(page, `${name} chat`);
      await ask(page, "mixed");
    }
    await expect.poll(() => chats.count()).toBe(NAMES.length);
    const kept = new Set(await ids());
    /** Open another chat and wait until it is shown. */
    const switchTo = async (at: number) => {
      const name = NAMES[at % NAMES.length] as string;
      await chats.filter({ hasText: `${name} chat` }).click();
      await page.locator(".arp-log arp-message").first().getByText(`You said: ${name} chat`).waitFor();
      await page.locator(".arp-log arp-table table").waitFor({ state: "attached" });
    };
    async function ids(): Promise<string[]> {
      return chats.evaluateAll((all) =>
        all.map((one) => new URL((one as HTMLAnchorElement).href).searchParams.get("session") as string),
      );
    }
    const round = async (switches: number, streams: number) => {
      for (let at = 0; at < switches; at += 1) await switchTo(at);
      for (let at = 0; at < streams; at += 1) {
        await fresh();
        await ask(page, "count 10");
      }
      await switchTo(0);
      const made = (await ids()).filter((id) => !kept.has(id));
      await page.evaluate(async (made) => {
        for (const id of made) await document.querySelector("arp-chat")?.activeClient?.sessions.deleteSession(id);
      }, made);
      await expect.poll(() => chats.count(), { timeout: 15_000 }).toBe(NAMES.length);
      await expect
        .poll(() => page.evaluate(() => (globalThis as unknown as { timers: Set<number> }).timers.size), {
          timeout: 15_000,
        })
        .toBeLessThanOrEqual(2);
    };
    await round(6, 3); // loads and creates everything that is kept
    const before = await held(page, devtools);
    await round(SWITCHES, STREAMS);
    const after = await held(page, devtools);
    console.log("W88", before, after);
    expect(after.heapMb - before.heapMb).toBeLessThan(MOST_MB);
    expect(after.timers).toBeLessThanOrEqual(before.timers);
    expect(after.listeners).toBeLessThanOrEqual(before.listeners + 20);
    expect(after.nodes).toBeLessThanOrEqual(before.nodes * 2);
    expect(faults.lines).toEqual([]);
    await context.close();
  },
);
