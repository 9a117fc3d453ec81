/** The system's Chromium, for every test that drives one. */

import { existsSync } from "node:fs";

const PLACES = [process.env.ARP_CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** Where it is; `undefined` if there is none. */
export const chromiumPath = PLACES.find((path) => path !== undefined && existsSync(path));

/** Where it is; without one, throws what is missing and what to do about it. */
export function needsChromium(): string {
  if (chromiumPath !== undefined) return chromiumPath;
  throw new Error("arp: no Chromium here; install one (Debian: apt-get install chromium), or name it: ARP_CHROMIUM=/path/to/chromium");
}
