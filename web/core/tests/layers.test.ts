/** A folder imports only from itself and from lower folders, so that each can be read without those above it. */

import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const SOURCE = new URL("../src/", import.meta.url);
/** Folders from the lowest to the highest; files directly in `src/` are entries and may import from all. */
const LAYERS = ["protocol", "transport", "sessions", "client", "chat", "draft"];

test.each(LAYERS)("%s imports nothing from above", (folder) => {
  const allowed = LAYERS.slice(0, LAYERS.indexOf(folder) + 1);
  const files = readdirSync(new URL(`${folder}/`, SOURCE)).filter((name) => name.endsWith(".ts"));
  expect(files.length).toBeGreaterThan(0);
  const imported = files.flatMap((name) =>
    [
      ...readFileSync(new URL(`${folder}/${name}`, SOURCE), "utf8").matchAll(/(?:from|import\()\s*"\.\.\/([^"/]+)/g),
    ].map(([, other]) => `${name}: ${other as string}`),
  );
  expect(imported.filter((one) => !allowed.includes(one.replace(/.*: /, "")))).toEqual([]);
});

test("every folder of code has its layer", () => {
  const folders = readdirSync(SOURCE, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  expect(folders.map(({ name }) => name).sort()).toEqual([...LAYERS, "locales"].sort());
});
