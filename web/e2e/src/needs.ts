/** Says before the first test what is missing, and what to do about it. */

import { existsSync } from "node:fs";

import { hasPython, PYTHON } from "../../core/tests/server.js";
import { CHROMIUM } from "./host.js";

export default function needs(): void {
  if (!existsSync(CHROMIUM)) {
    throw new Error("arp: no Chromium here; install one (Debian: apt-get install chromium), or name it: ARP_CHROMIUM=/path/to/chromium make web-e2e");
  }
  if (!hasPython) throw new Error(`arp: no Python at ${PYTHON}; run make install, or name one that has the project: ARP_PYTHON=/path/to/python`);
}
