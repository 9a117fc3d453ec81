/** Pictures that were looked at, and whether a page still looks so. */

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

import type { Page } from "playwright-core";

/** A channel may differ by so much without being counted. */
const TOLERANCE = 32;

/** How wide words come out with this machine's letters. */
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

/** The part of all pixels that differs; 1 if the sizes do. */
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
 * The part of all pixels that differs from a picture; `null` where the browser has other letters
 * than those of the pictures (`withLetters`), and nothing can be compared. `ARP_GOLDEN=write` writes it again.
 *
 * @param page Does the comparing; its policy must allow `data:` pictures.
 * @param file Where the picture lies, as PNG; beside it `fonts.json` keeps the letters.
 * @param shot How it looks now, as PNG.
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
