/** Announcements for screen readers, recorded by an observer of the live regions. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import { ArpServer, launch, log, open, say } from "../src/host.js";

const LIGHTHOUSE = fileURLToPath(new URL("../chats_app.py", import.meta.url));

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

/** Open a page with a clock that the test controls, and record the announcements of its live regions. */
async function listening(url = server.url): Promise<{ page: Page; heard: () => Promise<string[]> }> {
  const { page } = await open(browser, url);
  await page.clock.install();
  await page.evaluate(() => {
    const heard: string[] = [];
    Object.assign(globalThis, { heard });
    for (const region of document.querySelectorAll("arp-chat > :is([role=status], [role=alert], [role=log])")) {
      new MutationObserver((changes) => {
        const isLog = region.getAttribute("role") === "log";
        const added = isLog ? changes.flatMap(({ addedNodes }) => [...addedNodes]) : [region];
        for (const node of added) {
          const blocks = node instanceof Element && isLog ? [...node.children] : [];
          heard.push(
            blocks.length > 0 ? blocks.map(({ textContent }) => textContent).join(" | ") : (node.textContent ?? ""),
          );
        }
      }).observe(region, { childList: true, characterData: true, subtree: true });
    }
  });
  return { page, heard: () => page.evaluate(() => (globalThis as unknown as { heard: string[] }).heard) };
}

test("an answer is read block by block: no words are glued together, and nothing is read twice", async () => {
  const { page, heard } = await listening();
  await say(page, "speak");
  await log(page).getByText("print(1)").waitFor();
  await expect
    .poll(async () => {
      await page.clock.runFor(500);
      return (await heard()).at(-1);
    })
    .toBe(
      "Tides | High water is at six, low water at noon. | Bring a lamp | Bring oil | in a can | Berth; Ship | North; Ada | print(1) | x = 2 | See the chart.",
    );
  await page.context().close();
});

test.each([["permission"], ["busy permission"], ["confirm"]])(
  "work is not announced while the agent waits for an answer: %s",
  async (text) => {
    const { page, heard } = await listening();
    await say(page, text);
    await page
      .getByRole("button", { name: "Deny" })
      .or(page.getByRole("button", { name: "No", exact: true }))
      .first()
      .waitFor();
    if (text.startsWith("busy")) await log(page).getByText("Meanwhile the lamp burns.").waitFor();
    const before = (await heard()).length;
    for (let second = 0; second < 30; second += 5) await page.clock.runFor(5000);
    expect((await heard()).slice(before)).toEqual([]);
    expect((await heard()).join()).not.toContain("Still working");
    await page.context().close();
  },
);

test("nothing is announced while an older turn waits after a restart and another one works", async () => {
  const folder = mkdtempSync(join(tmpdir(), "arp-spoken-"));
  const ledger = ["--ledger", join(folder, "l.db")];
  const first = await ArpServer.start(LIGHTHOUSE, ...ledger);
  const { page } = await open(browser, first.url);
  await say(page, "permission");
  await page.getByRole("button", { name: "Deny" }).waitFor();
  await first.stop("SIGKILL");
  const second = await ArpServer.start(LIGHTHOUSE, ...ledger, "--port", new URL(first.url).port);
  try {
    const { page: later, heard } = await listening(page.url());
    await later.getByRole("button", { name: "Deny" }).waitFor();
    await say(later, "work");
    await later.locator(".arp-stop").waitFor();
    for (let second = 0; second < 30; second += 5) await later.clock.runFor(5000);
    expect((await heard()).join()).not.toContain("Still working");
    await later.getByRole("button", { name: "Deny" }).click();
    await later.clock.runFor(17_000);
    await expect.poll(async () => (await heard()).join()).toContain("Still working");
    await later.context().close();
  } finally {
    await page.context().close();
    await second.stop();
    rmSync(folder, { recursive: true });
  }
});

test("during work this is announced from time to time", async () => {
  const { page, heard } = await listening();
  await say(page, "work");
  await expect.poll(heard).toContain("Answering");
  await page.clock.runFor(9000);
  await expect.poll(heard).toContain("Still working");
  await page.locator(".arp-stop").click();
  await page.context().close();
});
