/** One server and one browser for a file of tests, and one page for each of them. */

import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect } from "vitest";

import { APP, ArpServer, launch, open, type Faults } from "./host.js";

export let server: ArpServer;
export let browser: Browser;
/** What `begin` opened last, and what went wrong on it. */
export let page: Page;
export let faults: Faults;

/** Starts server and browser before the tests of a file, and stops them behind. */
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
 * Closes the page behind each test too, which must not have had an error, a refusal of the policy or a
 * request to anywhere else (W77, W90).
 */
export function usePages(): void {
  useServer();
  afterEach(async () => {
    await page.context().close();
    expect(faults.lines).toEqual([]);
  });
}

/** Opens the page, of the file's own server if none is named. */
export async function begin({
  url = server.url,
  ...options
}: BrowserContextOptions & { url?: string } = {}): Promise<void> {
  ({ page, faults } = await open(browser, url, options));
}
