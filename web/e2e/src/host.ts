/** Server, browser and page for tests, with a record of everything that must not happen. */

import { fileURLToPath } from "node:url";

import { chromium, type Browser, type BrowserContextOptions, type Locator, type Page } from "playwright-core";

import { needsChromium, withLetters } from "../../core/tests/chromium.js";
import { ArpServer } from "../../core/tests/server.js";

export { ArpServer };

export const APP = fileURLToPath(new URL("../app.py", import.meta.url));

/** Flags of Chromium: only names of this machine can be resolved. */
const FLAGS = ["--host-resolver-rules=MAP other.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"];

export function launch(): Promise<Browser> {
  return chromium.launch({ executablePath: needsChromium(), args: FLAGS, env: withLetters() });
}

/** Faults of a page while it is open. */
export interface Faults {
  readonly lines: string[];
  /** All requested addresses. */
  readonly asked: string[];
}

/** Open a page and record its faults: errors, violations of the policy, requests to other hosts. */
export async function open(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<{ page: Page; faults: Faults }> {
  const context = await browser.newContext({
    viewport: { width: 1100, height: 800 },
    reducedMotion: "reduce",
    ...options,
  });
  context.setDefaultTimeout(8000);
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const page = await context.newPage();
  const faults = watched(page, url);
  await page.goto(url);
  await online(page);
  return { page, faults };
}

export function watched(page: Page, url: string): Faults {
  const faults: Faults = { lines: [], asked: [] };
  const origin = new URL(url).origin;
  page.on("pageerror", (error) => faults.lines.push(String(error)));
  page.on("console", (line) => {
    if (line.type() === "error" || /Content Security Policy|Trusted/.test(line.text())) faults.lines.push(line.text());
  });
  page.on("request", (request) => {
    faults.asked.push(request.url());
    if (!/^(?:data|blob):/.test(request.url()) && new URL(request.url()).origin !== origin) {
      faults.lines.push(`asked for ${request.url()}`);
    }
  });
  return faults;
}

export async function online(page: Page): Promise<void> {
  await page.locator('.page-link[data-phase="online"]').waitFor();
}

export const box = (page: Page): Locator => page.locator("arp-composer textarea");

export const log = (page: Page): Locator => page.locator("arp-chat .arp-log");

export async function say(page: Page, text: string): Promise<void> {
  await box(page).fill(text);
  await box(page).press("Enter");
}

/** Send a message and wait until its turn has ended. */
export async function ask(page: Page, text: string): Promise<void> {
  const before = await page.locator("arp-chat arp-message").count();
  await say(page, text);
  await page.locator("arp-chat arp-message").nth(before).waitFor();
  const over = page.locator(":is([data-status=completed], [data-status=failed], [data-status=cancelled])");
  await page.locator("arp-chat arp-message").nth(before).and(over).waitFor({ timeout: 30_000 });
}

/** Send `turn 1`, `turn 2`, …, each after the end of the previous turn, so that none is queued. */
export async function converse(page: Page, turns: number): Promise<void> {
  await page.evaluate(async (wanted) => {
    const client = document.querySelector("arp-chat")?.activeClient;
    if (!client) throw new Error("no client");
    for (let number = 1; number <= wanted; number += 1) {
      const id = await client.acknowledged(client.sendText(`turn ${number}`));
      const turn = client.store.turn(String(id));
      await new Promise<void>((resolve) => {
        const check = () => turn.get()?.final && resolve();
        turn.subscribe(check);
        check();
      });
    }
  }, turns);
}

/**
 * Return the elements and texts of a conversation, without parts that depend on the time. Colours of code are left
 * out: they appear when their grammars are loaded.
 */
export function shape(page: Page): Promise<string> {
  return page.locator("arp-chat .arp-log").evaluate((root) => {
    const IGNORED = new Set(["arp-elapsed", "svg", "style"]);
    const received = (node: Node): string => {
      if (node.nodeType === Node.TEXT_NODE) return (node.textContent ?? "").replace(/\s+/g, " ");
      if (!(node instanceof Element) || IGNORED.has(node.localName)) return "";
      if (node.matches(".arp-doing")) return "";
      const inner = [...node.childNodes].map(received).join("");
      if (node.matches("[class^=arp-k-], .arp-log-part")) return inner;
      const state = node.getAttribute("data-status") ?? node.getAttribute("data-state") ?? "";
      return `<${node.localName}${state && ` ${state}`}>${inner}</>`;
    };
    return [...root.childNodes].map(received).join("").replace(/\s+/g, " ");
  });
}
