/** Setup that reports missing requirements before the first test, with instructions. */

import { needsChromium } from "../../core/tests/chromium.js";
import { hasPython, PYTHON } from "../../core/tests/server.js";

export default function needs(): void {
  needsChromium();
  if (!hasPython)
    throw new Error(
      `arp: no Python at ${PYTHON}; run make install, or name one that has the project: ARP_PYTHON=/path/to/python`,
    );
}
