/** One server and one browser for a file of tests, and one page for each test. */

import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect } from "vitest";

import { APP, ArpServer, launch, open, type Faults } from "./host.js";

export let server: ArpServer;
export let browser: Browser;
/** Page that `begin` opened last, and its faults. */
export let page: Page;
export let faults: Faults;

/** Start server and browser before the tests of a file, and stop them afterwards. */
export function useServer(): void {
  beforeAll(async () => {
    server = await ArpServer.start(APP);
    browser = await launch();
  });
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
  });
}

/**
 * The same, and close the page after each test. It must have had no error, no violation of the policy and no request
 * to another host (W77, W90).
 */
export function usePages(): void {
  useServer();
  afterEach(async () => {
    await page.context().close();
    expect(faults.lines).toEqual([]);
  });
}

/** Open the page, by default that of the file's own server. */
export async function begin({
  url = server.url,
  ...options
}: BrowserContextOptions & { url?: string } = {}): Promise<void> {
  ({ page, faults } = await open(browser, url, options));
}
