/** Comparison of a page with golden images. */

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

import type { Page } from "playwright-core";

/** Largest difference of a colour channel that is not counted. */
const TOLERANCE = 32;

/** Return the widths of some words, which depend on this machine's fonts. */
export function letters(page: Page): Promise<number[]> {
  return page.evaluate(() => {
    const context = document.createElement("canvas").getContext("2d") as CanvasRenderingContext2D;
    return [getComputedStyle(document.querySelector(".arp") ?? document.body).fontFamily, "monospace", "serif"].flatMap(
      (family) => {
        context.font = `16px ${family}`;
        return ["Hamburgefonts 0123", "نص عربي", "🌧️"].map(
          (text) => Math.round(context.measureText(text).width * 100) / 100,
        );
      },
    );
  });
}

/** Return the part of all pixels that differs, from 0 to 1; 1 if the sizes differ. */
function difference(page: Page, one: string, other: string): Promise<number> {
  return page.evaluate(
    async ([one, other, tolerance]) => {
      const pixels = async (source: string) => {
        const image = Object.assign(new Image(), { src: `data:image/png;base64,${source}` });
        await image.decode();
        const canvas = Object.assign(document.createElement("canvas"), { width: image.width, height: image.height });
        const context = canvas.getContext("2d") as CanvasRenderingContext2D;
        context.drawImage(image, 0, 0);
        return context.getImageData(0, 0, image.width, image.height);
      };
      const [first, second] = [await pixels(one), await pixels(other)];
      if (first.width !== second.width || first.height !== second.height) return 1;
      let count = 0;
      for (let at = 0; at < first.data.length; at += 4) {
        const differs = [0, 1, 2].some(
          (channel) =>
            Math.abs((first.data[at + channel] as number) - (second.data[at + channel] as number)) > tolerance,
        );
        if (differs) count += 1;
      }
      return count / (first.data.length / 4);
    },
    [one, other, TOLERANCE] as const,
  );
}

/**
 * Return the part of all pixels that differs from a golden image. Return `null` if the browser has other fonts than
 * those of the images (`withLetters`), because nothing can be compared then. `ARP_GOLDEN=write` writes the image.
 *
 * @param page Page that does the comparison; its policy must allow `data:` images.
 * @param file Path of the golden image, a PNG; `fonts.json` beside it has the widths of words.
 * @param shot Current screenshot, a PNG.
 */
export async function apart(page: Page, file: string, shot: Buffer): Promise<number | null> {
  const fonts = `${dirname(file)}/fonts.json`;
  const found = `${JSON.stringify(await letters(page))}\n`;
  if (process.env.ARP_GOLDEN === "write") {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, shot);
    writeFileSync(fonts, found);
  }
  if (!existsSync(fonts) || readFileSync(fonts, "utf8") !== found) return null;
  return difference(page, readFileSync(file).toString("base64"), shot.toString("base64"));
}
