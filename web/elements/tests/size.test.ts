// @vitest-environment node
/** Size of the code: the first load is small, large parts are loaded later; and rules for all sources. */

import { readdirSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { build, type Rollup } from "vite";
import { expect, test } from "vitest";

const SOURCE = new URL("../src/", import.meta.url);
const KIB = 1024;

type Chunk = Rollup.OutputChunk;

/** Return the chunks of all components with their dependencies, built as for a page. */
async function chunks(): Promise<Map<string, Chunk>> {
  const built = await build({
    configFile: false,
    resolve: { conditions: ["module", "browser", "production"] }, // here NODE_ENV is "test", for which Lit has a development build
    logLevel: "silent",
    build: {
      write: false,
      target: "es2022",
      cssTarget: ["chrome123", "firefox128", "safari17.5"],
      rolldownOptions: { input: new URL("components/index.ts", SOURCE).pathname, preserveEntrySignatures: "strict" },
    },
  });
  const { output } = (Array.isArray(built) ? built[0] : built) as Rollup.RollupOutput;
  return new Map(output.flatMap((one) => (one.type === "chunk" ? [[one.fileName, one] as const] : [])));
}

function gzipped({ code }: Chunk): number {
  return gzipSync(code, { level: 9 }).length;
}

test("the components fit into their size limits", { timeout: 120_000 }, async () => {
  const all = await chunks();
  const first = new Set<string>();
  const follow = (name: string) => {
    if (first.has(name)) return;
    first.add(name);
    for (const next of all.get(name)?.imports ?? []) follow(next);
  };
  for (const { fileName, isEntry } of all.values()) if (isEntry) follow(fileName);
  const sum = [...first].reduce((bytes, name) => bytes + gzipped(all.get(name) as Chunk), 0);
  console.log(`first load of the components: ${(sum / KIB).toFixed(1)} KiB`);
  // The styles of text, code and cards are separate, for pages that begin with the chat alone. Subscriptions that
  // survive a move of the element take 0.25 KiB of it, and `<arp-late>` takes 0.1 KiB.
  expect(sum).toBeLessThanOrEqual(57.4 * KIB);
  const size = (part: string) => {
    const chunk = [...all.values()].find(({ name, fileName }) => name === part && !first.has(fileName));
    if (chunk === undefined) throw new Error(`${part} is not loaded later`);
    return gzipped(chunk);
  };
  expect(size("chart")).toBeLessThanOrEqual(9.65 * KIB);
  expect(size("diff")).toBeLessThanOrEqual(7.9 * KIB);
  expect(size("table")).toBeLessThanOrEqual(6.9 * KIB);
  expect(size("form")).toBeLessThanOrEqual(3.1 * KIB);
  expect(size("grammars")).toBeLessThanOrEqual(37.5 * KIB);
  expect(size("temml")).toBeLessThanOrEqual(58.5 * KIB);
});

test("W77 no source file passes text to a parser of HTML or code", () => {
  const parsing =
    /\b(?:(?:inner|outer)HTML\s*=[^=]|insertAdjacentHTML|document\.write|eval\(|new Function|DOMParser|unsafeHTML|setHTMLUnsafe|srcdoc)/;
  expect(
    sources()
      .filter(([, text]) => parsing.test(text))
      .map(([name]) => name),
  ).toEqual([]);
});

test("every file that defines an element is listed in sideEffects; otherwise bundlers drop it", () => {
  const named = (JSON.parse(readFileSync(new URL("../package.json", SOURCE), "utf8")) as { sideEffects: string[] })
    .sideEffects;
  const part = (glob: string) => ({ "**/": "(?:.*/)?", "**": ".*", "*": "[^/]*" })[glob] ?? glob.replace(".", "\\.");
  const patterns = named.map(
    (glob) =>
      new RegExp(
        `^${glob
          .split(/(\*\*\/|\*\*|\*)/)
          .map(part)
          .join("")}$`,
      ),
  );
  const defining = sources().filter(([, text]) => /^\s*(?:define\("|customElements\.define)/m.test(text));
  expect(defining.length).toBeGreaterThan(40);
  expect(defining.map(([name]) => name).filter((name) => !patterns.some((one) => one.test(name)))).toEqual([]);
});

test("no file uses the type any", () => {
  const loose = /(?::|as|<)\s*any\b/;
  expect(
    sources()
      .filter(([, text]) => loose.test(text.replace(/\/\*[^]*?\*\/|\/\/.*/g, "")))
      .map(([name]) => name),
  ).toEqual([]);
});

test("W75 every rule of our styles contains a class or an element of ours", () => {
  const styles = readdirSync(new URL("style/", SOURCE)).filter((name) => name.endsWith(".css"));
  const text = styles
    .map((name) => readFileSync(new URL(`style/${name}`, SOURCE), "utf8"))
    .join("\n")
    .replace(/\/\*[^]*?\*\//g, "");
  const selectors = [...text.matchAll(/([^{};]+)\{/g)]
    .map(([, selector]) => (selector as string).trim())
    .filter((one) => !/^(?:@|to$|from$|\d+%$)/.test(one));
  expect(selectors.length).toBeGreaterThan(200);
  expect(selectors.filter((one) => !/arp/.test(one))).toEqual([]);
});

function sources(): [name: string, text: string][] {
  const names = readdirSync(SOURCE, { recursive: true, encoding: "utf8" });
  return names
    .filter((name) => name.endsWith(".ts"))
    .map((name) => [name, readFileSync(new URL(name, SOURCE), "utf8")]);
}
