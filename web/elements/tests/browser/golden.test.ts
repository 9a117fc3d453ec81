// @vitest-environment node
/**
 * The gallery compared with its golden images in `golden/`. `ARP_GOLDEN=write` writes new images; look at them before a
 * commit. The tests bring their own fonts. If the browser uses other fonts, as it does outside Linux, nothing is
 * compared; with CI=true this is a failure.
 */

import { statSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { apart } from "../../../e2e/src/golden.js";
import { chromiumPath, GalleryHost, waitUntilDrawn } from "./page.js";

const FOLDER = fileURLToPath(new URL("../../golden/", import.meta.url));
const VIEWS = [
  ["light-ltr", "theme=light", 808, 1],
  ["dark-ltr", "theme=dark", 808, 1],
  ["light-rtl", "theme=light&locale=ar", 808, 0.75],
  ["dark-rtl", "theme=dark&locale=ar", 808, 0.75],
] as const;
/** Largest fraction of pixels that may differ. */
const MOST_DIFFERENT = 0.002;
const MOST_BYTES = 3_100_000;

describe.skipIf(chromiumPath === undefined)("golden images", () => {
  let host: GalleryHost;
  beforeAll(async () => void (host = await GalleryHost.start()), 120_000);
  afterAll(() => host.stop());

  test.each(VIEWS)(
    "every component in every state looks like its golden image: %s",
    { timeout: 120_000 },
    async (name, query, width, deviceScaleFactor) => {
      const { page, complaints } = await host.open(query, { reducedMotion: "reduce", width, deviceScaleFactor });
      await page.waitForSelector(".arp-k-keyword");
      await page.waitForSelector("math");
      const height = await page.evaluate(() => document.documentElement.scrollHeight);
      await page.setViewportSize({ width, height });
      await page.evaluate(waitUntilDrawn);
      await page.waitForFunction(() =>
        [...document.querySelectorAll("arp-code")].every(
          (code) => !(code as unknown as { language: string }).language || code.querySelector("[class^=arp-k-]"),
        ),
      );
      const shot = await page.screenshot({ animations: "disabled", caret: "hide" });
      const part = await apart(page, `${FOLDER}${name}.png`, shot);
      if (part === null && !process.env.CI)
        console.log(`${name}: other letters than those of the golden images; not compared`);
      else expect(part).toBeLessThan(MOST_DIFFERENT);
      expect(complaints).toEqual([]);
      await page.context().close();
    },
  );

  test("the golden images stay small", () => {
    const bytes = VIEWS.reduce((sum, [name]) => sum + statSync(`${FOLDER}${name}.png`).size, 0);
    expect(bytes).toBeLessThan(MOST_BYTES);
  });
});
