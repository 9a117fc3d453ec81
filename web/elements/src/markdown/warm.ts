/**
 * Draws one of each kind of block where nobody sees it, while nothing else is to be done: cold, what reads, builds,
 * styles and lays out prose holds up the first frame of an answer by some 40 ms.
 */

import { createContext } from "../base/context.js";
import { ProseView } from "./view.js";

const EACH = "# a\n\n*b* **c** `d` [e](//f)\n\n1. g\n\n|h|\n|-|\n|i|\n\n```\nj\n```\n";
const BARE = createContext();

/** Warms up what makes prose, and what shows it in this place, if one is given. */
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
    prose.getBoundingClientRect(); // is laid out for it
    prose.remove();
  });
}
