/** Open questions during a restart of the server, on pages that stay open and on later ones. */

import { once } from "node:events";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, statSync, utimesSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";

import { APP, ArpServer, ask, launch, log, online, open, say, type Faults } from "../src/host.js";

vi.setConfig({ testTimeout: 120_000 }); // each test restarts a server

let browser: Browser;
let server: ArpServer;
let folder: string;
let pages: { page: Page; faults: Faults }[];
/** The page that stays open; `other` shows the same chat. */
let page: Page;
let other: Page;

beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser?.close());

beforeEach(async ({ task }) => {
  folder = mkdtempSync(join(tmpdir(), "arp-restart-"));
  mkdirSync(join(folder, "app"));
  copyFileSync(APP, watched());
  const reloads = task.suite?.name.endsWith("--reload") ?? false;
  const more = reloads ? ["--reload", "--port", await freePort()] : [];
  server = await ArpServer.start(watched(), "--ledger", ledger(), ...more);
  pages = [];
  page = await shown(server.url);
  await ask(page, "before");
  other = await shown(page.url());
});

afterEach(async () => {
  for (const { page } of pages) await page.context().close();
  await server.stop();
  rmSync(folder, { recursive: true });
  // The browser logs each failed attempt to connect.
  const lines = pages.flatMap(({ faults }) => faults.lines).filter((line) => !line.includes("net::ERR_"));
  expect(lines).toEqual([]);
});

const ledger = () => join(folder, "chats.db");
/** Copy of the app's file in a temporary folder, for `--reload`. */
const watched = () => join(folder, "app", "app.py");

/** Return a free port. A server that restarts itself keeps its port. */
async function freePort(): Promise<string> {
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  const { port } = taken.address() as AddressInfo;
  taken.close();
  await once(taken, "close");
  return String(port);
}

async function shown(url: string): Promise<Page> {
  const opened = await open(browser, url);
  pages.push(opened);
  return opened.page;
}

/** Ways to end a server; with `--reload` a change of its file restarts it. */
type Ending = "SIGKILL" | "SIGTERM" | "SIGTERM twice" | "--reload";

/** End the server and start another one with the same ledger and address. */
async function restart(ending: Ending, meanwhile: () => Promise<void> = async () => {}): Promise<void> {
  const { port } = new URL(server.url);
  const away = () =>
    Promise.all(pages.map(({ page }) => page.locator('.page-link:not([data-phase="online"])').waitFor()));
  if (ending === "--reload") {
    const { atime, mtime } = statSync(watched());
    utimesSync(watched(), atime, new Date(mtime.getTime() + 1000));
    await away();
    await meanwhile();
    await vi.waitUntil(
      () =>
        fetch(server.url).then(
          ({ ok }) => ok,
          () => false,
        ),
      { timeout: 60_000 },
    );
  } else {
    await server.stop(...(ending === "SIGTERM twice" ? (["SIGTERM", "SIGTERM"] as const) : [ending]));
    await away();
    await meanwhile();
    server = await ArpServer.start(watched(), "--ledger", ledger(), "--port", port);
  }
  for (const { page } of pages) {
    await page.evaluate(() => dispatchEvent(new Event("online"))); // reconnects without waiting for seconds
    await online(page);
  }
}

const card = (where: Page) => where.locator(".arp-permission");
const button = (where: Page | Locator, name: string) => where.getByRole("button", { name, exact: true });
/** Return the content of the chat, without the durations of tools, which each page measures. */
const words = async (where: Page) =>
  (await log(where).locator(".arp-reply, .arp-said, .arp-permission-note, .arp-ending").allInnerTexts()).map((text) =>
    text
      .replace(/\s+/g, " ")
      .replace(/ [\d.]+s\b/, "")
      .trim(),
  );

/** Wait until all pages show a text once, and have the same content. */
async function agreed(text: string): Promise<void> {
  const late = await shown(page.url());
  for (const where of [page, other, late]) await log(where).getByText(text).first().waitFor();
  const all = await Promise.all(
    [page, other, late].map(async (where) => [
      await log(where).getByText(text).count(),
      await card(where).count(),
      await words(where),
    ]),
  );
  expect(all[0]?.slice(0, 2)).toEqual([1, 0]);
  expect(all[1]).toEqual(all[0]);
  expect(all[2]).toEqual(all[0]);
}

describe.each(["SIGKILL", "SIGTERM", "SIGTERM twice", "--reload"] as const)("after %s", (ending) => {
  test("a permission has its buttons on the page that stayed, on a reloaded one and on a second one; one answer counts", async () => {
    await say(page, "permission");
    for (const where of [page, other]) await card(where).waitFor();
    await restart(ending);
    await page.reload();
    for (const where of [page, other]) {
      await card(where).getByText("Change /etc/hosts?").waitFor();
      await card(where).locator(".arp-permission-arguments").waitFor();
      for (const name of ["Allow once", "Allow for this chat", "Deny"])
        await button(card(where), name).first().waitFor();
      await where.locator(".arp-permission-note", { hasText: "Waiting for your permission" }).waitFor();
      expect(await where.locator(".arp-stop").count()).toBe(0); // nothing runs
    }
    await button(card(other), "Allow once").click();
    await agreed('Answered later: "confirm".');
  });

  test("a permission that is answered while the server is away takes effect when it is back", async () => {
    await say(page, "permission");
    await card(page).waitFor();
    await restart(ending, async () => {
      await button(card(page), "Deny").click();
      await card(page).waitFor({ state: "detached" });
    });
    await agreed('Answered later: "deny".');
  });

  test.each([
    ["confirm", (where: Page) => button(log(where), "Do it").click(), 'Answered later: "confirm".'],
    ["pick", (where: Page) => button(log(where), "Wind").click(), "You took Wind."],
    [
      "form",
      async (where: Page) => {
        await where.getByLabel("Name").fill("Ada");
        await button(log(where), "Go on").click();
      },
      'Answered later: {"name": "Ada"}.',
    ],
  ] as const)("a question of the kind %s can be answered", async (text, answer, result) => {
    await say(page, text);
    for (const where of [page, other]) await where.locator("arp-message[data-status=waiting]").waitFor();
    await restart(ending);
    await answer(other);
    await agreed(result);
  });
});

test("permissions of two turns are open at once; each answer goes to its own question, and new answers are announced as done", async () => {
  await say(page, "permission two");
  await expect.poll(() => card(page).count()).toBe(2);
  await restart("SIGKILL");
  await say(page, "permission");
  await expect.poll(() => card(page).count()).toBe(3);
  await expect.poll(() => card(other).count()).toBe(3);
  await button(card(other).filter({ hasText: "Change /etc/hosts?" }), "Allow once").click();
  await log(page).getByText("It was changed.").waitFor();
  await page.locator(".arp-status", { hasText: "Answer complete" }).waitFor({ state: "attached" });
  await button(card(page).filter({ hasText: "Run two?" }), "Deny").click();
  await expect.poll(() => card(other).count()).toBe(1);
  await button(card(other).filter({ hasText: "Run one?" }), "Allow once").click();
  for (const where of [page, other]) {
    await expect.poll(() => card(where).count()).toBe(0);
    const notes = await where.locator(".arp-permission-note").allInnerTexts();
    expect(notes.map((text) => text.replace(/\s+/g, " ").trim()).sort()).toEqual([
      "Change /etc/hosts? Allowed",
      "Run one? Allowed",
      "Run two? Denied",
    ]);
  }
});

test("questions that are higher than the window scroll: the message box and each button can be reached", async () => {
  await say(page, "permission two");
  await expect.poll(() => card(page).count()).toBe(2);
  await restart("SIGKILL");
  await say(page, "run-files 300");
  await expect.poll(() => card(page).count()).toBe(3);
  const sizes = await page.evaluate(() => {
    const bottom = (name: string) => document.querySelector(name)?.getBoundingClientRect().bottom ?? Infinity;
    return { box: bottom("arp-composer"), questions: bottom("arp-permissions"), window: innerHeight };
  });
  expect(sizes.box).toBeLessThanOrEqual(sizes.window);
  expect(sizes.questions).toBeLessThanOrEqual(sizes.window);
  const last = card(page).filter({ hasText: "Run main.py?" });
  const shown = await last.locator(".arp-permission-arguments").innerText();
  for (const number of [0, 150, 299])
    expect(shown).toContain(
      `src/part-${number}.py": "${number} bytes, sha256 ${number.toString(16).padStart(64, "0")}`,
    );
  const args = last.locator(".arp-permission-arguments");
  expect(
    await args.evaluate((one) => {
      one.scrollTop = one.scrollHeight;
      return one.scrollHeight - one.scrollTop - one.clientHeight;
    }),
  ).toBeLessThan(2);
  await button(last, "Allow once").click();
  await log(page).getByText("It is allow.").waitFor();
});

test("a permission that expired, or was answered elsewhere, while a page was away has no buttons there", async () => {
  await say(page, "soon 3");
  await card(page).waitFor();
  await restart("SIGKILL", () => page.locator(".arp-permission", { hasText: "0:00 left" }).waitFor());
  await page.locator(".arp-permission-note", { hasText: "Expired" }).waitFor();
  expect(await card(page).count()).toBe(0);
  await say(page, "permission");
  for (const where of [page, other]) await card(where).waitFor();
  await page.context().setOffline(true);
  await page.evaluate(() => document.querySelector("arp-chat")?.activeClient?.disconnect());
  await button(card(other), "Deny").click();
  await log(other).getByText("It was left alone.").waitFor();
  await page.context().setOffline(false);
  await page.evaluate(() => document.querySelector("arp-chat")?.activeClient?.connect());
  await page.locator(".arp-permission-note", { hasText: "Denied" }).waitFor();
  expect(await card(page).count()).toBe(0);
});
