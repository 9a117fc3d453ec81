/**
 * Draws one block of each kind invisibly while the browser is idle. Otherwise the first use of the code and styles for
 * prose would delay the first frame of an answer by about 40 ms.
 */

import { createContext } from "../base/context.js";
import { ProseView } from "./view.js";

const EACH = "# a\n\n*b* **c** `d` [e](//f)\n\n1. g\n\n|h|\n|-|\n|i|\n\n```\nj\n```\n";
const BARE = createContext();

/** Warm up the code for prose, and with a `place` also its styles and layout there. */
export function warmProse(place?: Element): void {
  globalThis.requestIdleCallback?.(() => {
    const prose = document.createElement("div");
    const blocks = document.createElement("div");
    prose.className = "arp-prose";
    blocks.className = "arp-blocks";
    prose.style.cssText = "position:absolute;inset-inline:0;visibility:hidden";
    prose.append(blocks);
    place?.append(prose);
    new ProseView(blocks, BARE).update(EACH, false, BARE);
    prose.getBoundingClientRect(); // forces the layout
    prose.remove();
  });
}
