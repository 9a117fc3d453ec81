/** A real Chromium that records errors and warnings. */

import { chromium, type Browser, type Page, type WebSocket } from "playwright-core";
import { needsChromium } from "../../core/tests/chromium.js";

export function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath: needsChromium(),
    args: ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"],
  });
}

/** A page, and the errors and warnings while it is open. */
export interface Watched {
  readonly page: Page;
  readonly faults: string[];
  /** Open WebSockets. */
  readonly sockets: Set<WebSocket>;
}

export async function open(browser: Browser, url: string): Promise<Watched> {
  const page = await browser.newPage({ viewport: { width: 1000, height: 800 } });
  page.setDefaultTimeout(15_000);
  const faults: string[] = [];
  const sockets = new Set<WebSocket>();
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (line) => void (["error", "warning"].includes(line.type()) && faults.push(line.text())));
  page.on("websocket", (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  await page.goto(url);
  return { page, faults, sockets };
}

export async function say(page: Page, text: string): Promise<void> {
  const box = page.locator("arp-composer textarea");
  await box.fill(text);
  await box.press("Enter");
}

/** Wait for a text in the messages of the chat. */
export async function answered(page: Page, text: string): Promise<void> {
  await page.locator("arp-chat .arp-log arp-message", { hasText: text }).first().waitFor();
}
