/** The system's Chromium for browser tests, with fonts that are the same on every machine. */

import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const PLACES = [process.env.ARP_CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const FONTS = fileURLToPath(new URL("../../node_modules/dejavu-fonts-ttf/ttf", import.meta.url));
const CACHE = fileURLToPath(new URL("../../node_modules/.cache/letters", import.meta.url));

/** Path of Chromium; `undefined` if it is not installed. */
export const chromiumPath = PLACES.find((path) => path !== undefined && existsSync(path));

/** Return the path of Chromium; throw an error with instructions if it is not installed. */
export function needsChromium(): string {
  if (chromiumPath !== undefined) return chromiumPath;
  throw new Error(
    "arp: no Chromium here; install one (Debian: apt-get install chromium), or name it: ARP_CHROMIUM=/path/to/chromium",
  );
}

/** Return an environment in which a browser only uses the fonts of the tests, with fixed rendering (Linux). */
export function withLetters(): { [name: string]: string } {
  mkdirSync(CACHE, { recursive: true });
  const file = `${CACHE}/fonts.conf`;
  writeFileSync(file, LETTERS);
  return { ...(process.env as { [name: string]: string }), FONTCONFIG_FILE: file };
}

const named = (family: string, font: string) =>
  `<alias binding="same"><family>${family}</family><prefer><family>${font}</family></prefer></alias>`;
const drawn = (name: string, kind: string, value: string) =>
  `<edit name="${name}" mode="assign"><${kind}>${value}</${kind}></edit>`;

const LETTERS = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig>
  <dir>${FONTS}</dir>
  <cachedir>${CACHE}</cachedir>
  <match target="pattern">
    ${["sans-serif", "serif", "monospace"].map((family) => `<test qual="all" name="family" compare="not_eq"><string>${family}</string></test>`).join("\n    ")}
    <edit name="family" mode="append_last"><string>sans-serif</string></edit>
  </match>
  ${["system-ui", "sans-serif"].map((family) => named(family, "DejaVu Sans")).join("\n  ")}
  ${["ui-monospace", "monospace"].map((family) => named(family, "DejaVu Sans Mono")).join("\n  ")}
  ${named("serif", "DejaVu Serif")}
  <match target="pattern">
    ${drawn("antialias", "bool", "true")}
    ${drawn("hinting", "bool", "true")}
    ${drawn("hintstyle", "const", "hintslight")}
    ${drawn("rgba", "const", "none")}
  </match>
</fontconfig>
`;
