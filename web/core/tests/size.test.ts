/** The core is small, has no dependencies, and draws nothing. */

import { readdirSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { rolldown } from "rolldown";
import { expect, test } from "vitest";

const SOURCE = new URL("../src/", import.meta.url);
const KIB = 1024;

/** Modules that are loaded on demand: fallback transport, uploads, lists and history, the draft's workflow stream. */
const LATER = /(chats|history_turns|sse_link|upload|workflow_stream)\.js$/;

/** Return the size of an entry in bytes, bundled by Vite and compressed with gzip. */
async function gzipped(entry: string): Promise<number> {
  const input = new URL(entry, SOURCE).pathname;
  const bundle = await rolldown({ input, logLevel: "silent", external: LATER });
  const { output } = await bundle.generate({ format: "es", minify: true });
  await bundle.close();
  return gzipSync(output[0].code, { level: 9 }).length;
}

test(
  "all of the main entry, with surfaces, permissions, what is shared and the turns of the draft, fits into 15.6 KiB",
  { timeout: 60_000 },
  async () => {
    expect(await gzipped("index.ts")).toBeLessThanOrEqual(15.6 * KIB);
  },
);

test.each([
  ["transport/sse_link.ts", 3.55], // 36 bytes over 3.5 KiB: numbers that are not rounded; what the draft leaves out; its table of messages has the terms of permissions, the choices of commands and what surfaces are
  ["export.ts", 4],
  ["strings.ts", 4],
  ["timeline.ts", 2],
  ["surfaces.ts", 1.15], // with whether the panel is closed, and what on it is new
  ["history.ts", 1],
  ["permissions.ts", 1.25],
  ["chat.ts", 3.1], // a little over 3 KiB: the name of who speaks, which is drawn too, and the generated tables
])("%s fits into %s KiB", { timeout: 60_000 }, async (entry, most) => {
  expect(await gzipped(entry)).toBeLessThanOrEqual(most * KIB);
});

test("the core imports only its own files", () => {
  const manifest = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  expect(manifest.dependencies).toBeUndefined();
  expect(manifest.peerDependencies).toBeUndefined();
  const imports = sources().flatMap(([, text]) => [...text.matchAll(/(?:from|import\()\s*"([^"]+)"/g)]);
  expect(imports.map(([, path]) => path).filter((path) => !/^\.\.?\/.*\.js$/.test(path as string))).toEqual([]);
});

test("no file draws, parses HTML or runs text", () => {
  const drawing =
    /\b(?:createElement|querySelector|innerHTML|outerHTML|document\.write|eval\(|new Function|DOMParser|localStorage)\b/;
  expect(
    sources()
      .filter(([, text]) => drawing.test(text))
      .map(([name]) => name),
  ).toEqual([]);
});

test("no file uses the type any", () => {
  const loose = /(?::|as|<)\s*any\b/;
  expect(
    sources()
      .filter(([, text]) => loose.test(text.replace(/\/\*[^]*?\*\/|\/\/.*/g, "")))
      .map(([name]) => name),
  ).toEqual([]);
});

function sources(): [name: string, text: string][] {
  const names = readdirSync(SOURCE, { recursive: true, encoding: "utf8" });
  return names
    .filter((name) => name.endsWith(".ts"))
    .map((name) => [name, readFileSync(new URL(name, SOURCE), "utf8")]);
}
