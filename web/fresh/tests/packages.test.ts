/** The published packages: entries that resolve, types, side effects, dependencies (webui.md W87). */

import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { pack } from "../src/application.js";

const run = promisify(execFile);
const MODULES = fileURLToPath(new URL("../../node_modules/", import.meta.url));
const NAMES = ["core", "elements", "react", "vue"] as const;
type Name = (typeof NAMES)[number];

/** Checked fields of a package's manifest. */
interface Manifest {
  readonly name: string;
  readonly type: string;
  readonly exports: { readonly [entry: string]: { readonly types: string; readonly default: string } };
  readonly sideEffects?: false | readonly string[];
  readonly dependencies?: { readonly [name: string]: string };
}

/** Folder with the packed packages and their dependencies in its node_modules. */
let home: string;
const manifests = new Map<Name, Manifest>();

const placeOf = (name: Name) => join(home, "node_modules", "@agent-rendering", name);
const manifestOf = (name: Name) => manifests.get(name) as Manifest;
/** Return the specifiers of a package's entries. */
const entriesOf = (name: Name) =>
  Object.keys(manifestOf(name).exports).map((entry) => join(manifestOf(name).name, entry));

beforeAll(async () => {
  const files = await pack();
  home = await mkdtemp(join(tmpdir(), "arp-fresh-packages-"));
  await mkdir(join(home, "node_modules", "@agent-rendering"), { recursive: true });
  for (const other of await readdir(MODULES)) {
    if (other !== "@agent-rendering" && !other.startsWith("."))
      await symlink(join(MODULES, other), join(home, "node_modules", other));
  }
  for (const name of NAMES) {
    await mkdir(placeOf(name));
    await run("tar", ["-xzf", files[name], "-C", placeOf(name), "--strip-components=1"]);
    manifests.set(name, JSON.parse(await readFile(join(placeOf(name), "package.json"), "utf8")));
  }
  await writeFile(join(home, "package.json"), '{"type":"module","private":true}');
});

afterAll(() => rm(home, { recursive: true, force: true }));

describe.each(NAMES)("%s", (name) => {
  test("W87 publint finds nothing", async () => {
    const { messages, pkg } = await publint({ pkgDir: placeOf(name), pack: false, strict: true });
    expect(messages.map((message) => formatMessage(message, pkg))).toEqual([]);
  });

  test("W87 the package is ESM only, and every entry has its types and its file", async () => {
    const { type, exports } = manifestOf(name);
    expect(type).toBe("module");
    for (const [entry, { types, default: file }] of Object.entries(exports)) {
      expect([entry, types.endsWith(".d.ts"), file.endsWith(".js")]).toEqual([entry, true, true]);
      const code = await readFile(join(placeOf(name), file), "utf8");
      expect(code, entry).not.toMatch(/\brequire\(|\bmodule\.exports\b/);
      expect((await readFile(join(placeOf(name), types), "utf8")).length, entry).toBeGreaterThan(0);
    }
  });

  test("W87 every entry loads in Node.js, where there is no document", async () => {
    const script = `for (const entry of ${JSON.stringify(entriesOf(name).filter((entry) => !entry.endsWith("/standalone")))}) console.log(entry, Object.keys(await import(entry)).length > 0);`;
    const { stdout } = await run(process.execPath, ["--input-type=module", "-e", script], { cwd: home });
    expect(
      stdout
        .trim()
        .split("\n")
        .filter((line) => !line.endsWith(" true")),
    ).toEqual([]);
  });
});

test.each(["nodenext", "bundler"])(
  "W87 the types of every entry of every package resolve and are correct, with %s",
  async (resolution) => {
    const uses = NAMES.flatMap(entriesOf).map(
      (entry, at) => `import * as entry${at} from "${entry}";\nexport const has${at}: object = entry${at};`,
    );
    await writeFile(join(home, `${resolution}.ts`), uses.join("\n"));
    const module = resolution === "nodenext" ? "nodenext" : "esnext";
    const compilerOptions = {
      noEmit: true,
      strict: true,
      target: "es2022",
      lib: ["es2023", "dom", "dom.iterable"],
      module,
      moduleResolution: resolution,
      jsx: "react-jsx",
      types: [],
    };
    await writeFile(join(home, `${resolution}.json`), JSON.stringify({ compilerOptions, files: [`${resolution}.ts`] }));
    const compiler = join(MODULES, "typescript", "bin", "tsc");
    const told = await run(process.execPath, [compiler, "-p", `${resolution}.json`], { cwd: home }).catch(
      (error: { stdout: string }) => error,
    );
    expect(told.stdout).toBe("");
  },
);

test("W87 the core has no dependencies", () => {
  const { dependencies, ...manifest } = manifestOf("core");
  expect(Object.keys(dependencies ?? {})).toEqual([]);
  expect(Object.keys(manifest)).not.toContain("peerDependencies");
});

/** Bundle one line of an application; return the code. */
async function bundled(line: string): Promise<string> {
  const entry = join(home, "entry.js");
  await writeFile(entry, line);
  const bundle = await rolldown({ input: entry, logLevel: "silent", external: /^(?:react|react-dom|vue)(?:\/|$)/ });
  const { output } = await bundle.generate({ format: "es", minify: true });
  await bundle.close();
  return output.flatMap((one) => (one.type === "chunk" ? [one.code] : [])).join("\n");
}

const ELEMENTS = [
  "arp-chat",
  "arp-message",
  "arp-composer",
  "arp-table",
  "arp-chart",
  "arp-form",
  "arp-diff",
  "arp-prose",
  "arp-place",
];

describe("W87 side effects", () => {
  test("an import without names defines the elements", async () => {
    const code = await bundled('import "@agent-rendering/elements";');
    expect(ELEMENTS.filter((tag) => tag !== "arp-place" && !code.includes(tag))).toEqual([]);
  });

  test.each(["react", "vue"])("the components of %s import the elements, its hooks alone do not", async (name) => {
    const all = await bundled(`import { ArpChat } from "@agent-rendering/${name}"; globalThis.use = ArpChat;`);
    expect(ELEMENTS.filter((tag) => !all.includes(tag))).toEqual([]);
    const hooks = await bundled(`import { useArp } from "@agent-rendering/${name}"; globalThis.use = useArp;`);
    expect(ELEMENTS.filter((tag) => hooks.includes(tag))).toEqual([]);
  });

  test("functions that only compute do not import elements", async () => {
    const code = await bundled('import { toCsv } from "@agent-rendering/core/export"; globalThis.use = toCsv;');
    expect(code.length).toBeLessThan(4000);
    expect(ELEMENTS.filter((tag) => code.includes(tag))).toEqual([]);
  });

  test("sideEffects names every file that defines an element, and no other", async () => {
    const dist = join(placeOf("elements"), "dist");
    const named = manifestOf("elements").sideEffects;
    if (!named) throw new Error("no file is named");
    const part = (glob: string) =>
      ({ "**/": "(?:.*/)?", "**": ".*", "*": "[^/]*" })[glob] ?? glob.replace(/[.+]/g, "\\$&");
    const patterns = named.map(
      (glob) =>
        new RegExp(
          `^${glob
            .split(/(\*\*\/|\*\*|\*)/)
            .map(part)
            .join("")}$`,
        ),
    );
    const files = (await readdir(dist, { recursive: true, encoding: "utf8" })).filter((file) => file.endsWith(".js"));
    for (const file of files) {
      const defines = /^(?:define\(|customElements\.define|if \(typeof customElements)/m.test(
        await readFile(join(dist, file), "utf8"),
      );
      const isNamed = patterns.some((pattern) => pattern.test(`dist/${file}`));
      if (defines) expect([file, isNamed]).toEqual([file, true]);
    }
    const pure = files.filter((file) => !patterns.some((pattern) => pattern.test(`dist/${file}`)));
    expect(pure).toEqual(expect.arrayContaining(["base/context.js", "base/url.js", "base/values.js"]));
  });
});
