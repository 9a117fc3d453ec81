/** Deleted and missing chats, greetings, and questions in custom components. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { APP, ArpServer, ask, box, launch, log, online, open, say } from "../src/host.js";

const LIGHTHOUSE = fileURLToPath(new URL("../chats_app.py", import.meta.url));

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser?.close());

interface Row {
  readonly id: string;
  readonly title: string;
  readonly message_count: number;
}

const rows = async (server: ArpServer) => (await (await fetch(`${server.url}/_api/chats`)).json()) as Row[];
const titles = async (server: ArpServer) =>
  (await rows(server))
    .filter(({ message_count: count }) => count > 0)
    .map(({ title }) => title)
    .sort();
const names = (page: Page) => page.locator(".arp-session-title").allInnerTexts();
const newChat = (page: Page) => page.getByRole("link", { name: "New chat" }).first().click();

async function choose(page: Page, chat: string, item: string): Promise<void> {
  await page.getByRole("button", { name: `Chat options: ${chat}` }).click();
  await page.getByRole("menuitem", { name: item, exact: true }).click();
}

/** Run a test with its own server, and a page with two chats, "stay" and "gone". */
async function withChats(
  run: (page: Page, server: ArpServer, restart: () => Promise<ArpServer>) => Promise<void>,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "arp-chats-"));
  const start = (port = "0") => ArpServer.start(APP, "--ledger", join(folder, "l.db"), "--port", port);
  let server = await start();
  const { page } = await open(browser, server.url);
  try {
    await ask(page, "stay");
    await newChat(page);
    await page.locator(".arp-welcome").waitFor();
    await ask(page, "gone");
    await expect.poll(() => names(page)).toEqual(["gone", "stay"]);
    await run(page, server, async () => (server = await start(new URL(server.url).port)));
  } finally {
    await page.context().close();
    await server.stop();
    rmSync(folder, { recursive: true });
  }
}

describe("a chat that was deleted", () => {
  test("stays deleted when the page is reloaded at once", async () => {
    await withChats(async (page, server) => {
      await choose(page, "gone", "Delete");
      await page.getByRole("button", { name: "Undo" }).waitFor();
      await page.reload();
      await online(page);
      await expect.poll(() => names(page)).toEqual(["stay"]);
      await expect.poll(() => titles(server)).toEqual(["stay"]);
      await expect
        .poll(() => page.evaluate(() => Object.keys(localStorage).filter((key) => key.startsWith("arp.deleting"))))
        .toEqual([]);
    });
  });

  test("is deleted on the server when the tab is closed at once", async () => {
    await withChats(async (page, server) => {
      await choose(page, "gone", "Delete");
      await page.getByRole("button", { name: "Undo" }).waitFor();
      await page.close({ runBeforeUnload: true });
      await expect.poll(() => titles(server)).toEqual(["stay"]);
    });
  });

  test("a name that is being typed is kept when the page is reloaded", async () => {
    await withChats(async (page, server) => {
      await choose(page, "gone", "Rename");
      await page.locator(".arp-session-name").fill("named");
      await page.reload();
      await expect.poll(() => titles(server)).toEqual(["named", "stay"]);
    });
  });

  test("is hidden, and deleted when the server is back, also by the page after a reload", async () => {
    await withChats(async (page, server, restart) => {
      await server.stop("SIGKILL");
      await page.locator('.page-link:not([data-phase="online"])').waitFor();
      await choose(page, "gone", "Delete");
      await expect.poll(() => names(page)).toEqual(["stay"]);
      const other = await restart();
      await page.reload();
      await online(page);
      expect(await names(page)).not.toContain("gone");
      await expect.poll(() => titles(other), { timeout: 15_000 }).toEqual(["stay"]);
      await expect.poll(() => names(page)).toEqual(["stay"]);
    });
  });

  test("an undo in one tab counts in the other, which hides the chat until then", async () => {
    await withChats(async (page, server) => {
      const other = await page.context().newPage();
      await other.goto(server.url);
      await expect.poll(() => names(other)).toEqual(["gone", "stay"]);
      await choose(page, "gone", "Delete");
      await expect.poll(() => names(other)).toEqual(["stay"]);
      await page.getByRole("button", { name: "Undo" }).click();
      await expect.poll(() => names(other)).toEqual(["gone", "stay"]);
      expect(await titles(server)).toEqual(["gone", "stay"]);
    });
  });
});

describe("an address of a chat", () => {
  test("that does not exist shows a message, begins no chat, and leads to a new one", async () => {
    await withChats(async (page, server) => {
      await page.goto(`${server.url}/?session=nobody`);
      await page.getByText("This chat does not exist, or it is not yours.").waitFor();
      expect(await page.locator("arp-composer").isVisible()).toBe(false);
      await expect.poll(() => names(page)).toEqual(["gone", "stay"]);
      expect((await fetch(`${server.url}/_api/chats/nobody`)).status).toBe(404);
      await page.locator(".page-missing").getByRole("link", { name: "New chat" }).click();
      await online(page);
      await ask(page, "begun");
      expect(await titles(server)).toEqual(["begun", "gone", "stay"]);
      expect(new URL(page.url()).searchParams.get("session")).not.toBe("nobody");
      await page.goBack();
      await page.getByText("This chat does not exist, or it is not yours.").waitFor();
      await page.goForward();
      await log(page).getByText("You said: begun").waitFor();
      expect(await page.locator(".page-missing").count()).toBe(0);
    });
  });

  test("of an unused chat opens a new chat after a reload, by back, and after a restart", async () => {
    await withChats(async (page, server, restart) => {
      await newChat(page);
      await page.locator(".arp-welcome").waitFor();
      await expect.poll(() => new URL(page.url()).searchParams.get("session")).not.toBeNull();
      await page.locator(".arp-session", { hasText: "stay" }).getByRole("link").click();
      await log(page).getByText("You said: stay").waitFor();
      await page.goBack();
      await page.locator(".arp-welcome").waitFor();
      await online(page);
      await server.stop();
      await restart();
      await page.reload();
      await online(page);
      await ask(page, "now");
      await expect.poll(() => names(page)).toEqual(["now", "gone", "stay"]);
    });
  });

  test("of a deleted chat shows a message after a reload", async () => {
    await withChats(async (page, server) => {
      const { id } = (await rows(server)).find(({ title }) => title === "gone") as Row;
      await fetch(`${server.url}/_api/chats/${id}`, { method: "DELETE" });
      await page.reload();
      await page.getByText("This chat does not exist, or it is not yours.").waitFor();
    });
  });
});

describe("an app that greets", () => {
  test("shows its greeting between title and suggestions, and a chat is listed after the first message", async () => {
    const server = await ArpServer.start(LIGHTHOUSE);
    try {
      const { page, faults } = await open(browser, server.url);
      for (let load = 0; load < 3; load += 1) {
        await log(page).getByText("Good evening. What shall the light do?").waitFor();
        expect(await page.getByRole("heading", { name: "Lighthouse", level: 2 }).count()).toBe(1);
        expect(await page.locator(".arp-suggestion").allInnerTexts()).toEqual(["hello", "dial"]);
        expect(await page.locator(".arp-welcome-text").count()).toBe(0);
        await page.goto(server.url);
        await online(page);
      }
      await log(page).getByText("Good evening.").waitFor();
      await page.getByText("No chats yet").waitFor();
      expect((await rows(server)).map(({ message_count: count }) => count)).toEqual((await rows(server)).map(() => 0));
      const places = await page.evaluate(() =>
        [".arp-welcome h2", ".arp-reply", ".arp-suggestion"].map(
          (name) => document.querySelector(name)?.getBoundingClientRect().top ?? NaN,
        ),
      );
      expect(places).toEqual([...places].sort((one, other) => one - other));
      await page.getByRole("button", { name: "hello" }).click();
      await log(page).getByText("You said: hello").waitFor();
      await expect.poll(() => names(page)).toEqual(["hello"]);
      expect(await page.locator(".arp-welcome, .arp-suggestion").count()).toBe(0);
      await page.reload();
      await log(page).getByText("You said: hello").waitFor();
      expect(await log(page).getByText("Good evening.").count()).toBe(1);
      expect(faults.lines).toEqual([]);
      await page.context().close();
    } finally {
      await server.stop();
    }
  });
});

describe("a question in a custom component", () => {
  let server: ArpServer;
  beforeAll(async () => {
    server = await ArpServer.start(LIGHTHOUSE);
  });
  afterAll(() => server?.stop());

  test("is answered by answer() where the page has the component, and shows as answered", async () => {
    const { page } = await open(browser, server.url);
    await page.evaluate(() => {
      type Context = { answer(component: object, value: unknown): void };
      const chat = Object.assign(document.createElement("arp-chat"), {
        url: "",
        components: {
          "x-acme-dial": (
            component: { props: { state?: string; most: number; answer?: unknown } },
            context: Context,
          ) => {
            const button = document.createElement("button");
            button.textContent = `Point to ${component.props.most}: ${component.props.state} ${JSON.stringify(component.props.answer) ?? ""}`;
            button.addEventListener("click", () => context.answer(component, { angle: component.props.most }));
            return button;
          },
        },
      });
      document.body.replaceChildren(chat);
    });
    await say(page, "dial");
    await page.getByRole("button", { name: "Point to 90: open" }).click();
    await log(page).getByText('Got {"angle": 90}.').waitFor();
    await page.getByRole("button", { name: 'Point to 90: answered {"angle":90}' }).waitFor();
    await page.context().close();
  });

  test("is answered by a text, or declined, where the page does not have it, also after a reload", async () => {
    const { page } = await open(browser, server.url);
    await say(page, "dial");
    await page.getByRole("textbox", { name: "Where shall it point?" }).waitFor();
    await page.reload();
    const field = page.getByRole("textbox", { name: "Where shall it point?" });
    await field.fill("north");
    await field.press("Enter");
    await log(page).getByText('Got "north".').waitFor();
    expect(await field.isEnabled().catch(() => false)).toBe(false);
    await page.reload();
    await log(page).getByText('Got "north".').waitFor();
    await log(page).locator(".arp-standing", { hasText: "Answered" }).waitFor();
    await say(page, "dial");
    await log(page).getByRole("button", { name: "Decline" }).click();
    await log(page).getByText("Got nothing.").waitFor();
    await page.context().close();
  });

  test("is answered by its fallback, if the fallback is a question", async () => {
    const { page } = await open(browser, server.url);
    await say(page, "dial form");
    await page.getByLabel("Angle").fill("45");
    await page.getByRole("button", { name: "Point", exact: true }).click();
    await log(page).getByText('Got {"angle": 45}.').waitFor();
    await page.reload();
    await log(page).locator(".arp-standing", { hasText: "Answered" }).waitFor();
    expect(await page.getByRole("button", { name: "Point", exact: true }).count()).toBe(0);
    expect(await box(page).isVisible()).toBe(true);
    await page.context().close();
  });
});
