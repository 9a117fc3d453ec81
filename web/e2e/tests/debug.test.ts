/** `arp serve --debug`: the traceback of an agent's error is on its author's screen, once. */

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import { APP, ArpServer, ask, launch, online, open } from "../src/host.js";

let server: ArpServer;
let browser: Browser;
let page: Page;

beforeAll(async () => {
  server = await ArpServer.start(APP, "--debug");
  browser = await launch();
  ({ page } = await open(browser, server.url));
});

afterAll(async () => {
  await browser?.close();
  await server?.stop();
});

test("a traceback is folded below the error as Details; after a reload only the error is shown", async () => {
  await ask(page, "fail");
  const card = page.locator(".arp-trouble", { hasText: "The agent failed. The server's log has the reason." });
  await card.locator("summary").waitFor();
  expect(await card.count()).toBe(1);
  expect(await card.locator("pre").isVisible()).toBe(false);
  await card.locator("summary", { hasText: "Details" }).click();
  expect(await card.locator("pre").innerText()).toMatch(
    /^Traceback \(most recent call last\):\n {2}File ".+app\.py", line \d+, in agent\n/,
  );
  await card.getByRole("button", { name: "Try again" }).waitFor();
  await page.reload();
  await online(page);
  await page.locator(".arp-trouble", { hasText: "the agent failed" }).waitFor();
  expect(await page.locator(".arp-trouble").count()).toBe(1);
});

test("the inspector marks the session as failed, and shows the same traceback, also later", async () => {
  const session = new URL(page.url()).searchParams.get("session") ?? "";
  await page.goto(`${server.url}/_inspect#session=${session}`);
  await page.locator("#session-list li", { hasText: "failed" }).locator(".dot.bad").waitFor();
  await page.locator("#traceback summary").click();
  expect(await page.locator("#traceback-text").innerText()).toMatch(
    /^Traceback \(most recent call last\):\n {2}File ".+app\.py", line \d+, in agent\n/,
  );
});
