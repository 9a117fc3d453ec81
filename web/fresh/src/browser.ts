/** A real Chromium that gathers what must not happen. */

import { existsSync } from "node:fs";
import { chromium, type Browser, type Page, type WebSocket } from "playwright-core";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

export function launch(): Promise<Browser> {
  const executablePath = process.env.ARP_CHROMIUM ?? PLACES.find((place) => existsSync(place)) ?? "";
  return chromium.launch({ executablePath, args: ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"] });
}

/** A page and what went wrong while it was open. */
export interface Watched {
  readonly page: Page;
  readonly faults: string[];
  /** The WebSockets that were opened and not closed. */
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

/** Waits until the agent has said something in the chat. */
export async function answered(page: Page, text: string): Promise<void> {
  await page.locator("arp-chat .arp-log arp-message", { hasText: text }).first().waitFor();
}
