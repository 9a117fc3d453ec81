/**
 * Build the page into `arp/server/static/`: compressed files with hashed names, and `manifest.json`, which lists the
 * files and the hash of the sources. The same sources give the same bytes. In the folder `inspect/`, only `printed.js`
 * is built here: the inspector shares it with the page.
 */

import { createHash } from "node:crypto";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

import { transform } from "lightningcss";
import { build, minify } from "vite";

const WEB = fileURLToPath(new URL("..", import.meta.url));
const STATIC = fileURLToPath(new URL("../../arp/server/static/", import.meta.url));
const SOURCES = ["core/src", "elements/src", "page/src", "page/index.html", "page/build.mjs", "package-lock.json"];
const KEPT = new Set(["inspect"]);
/** Browsers with `light-dark()`, the same as for the packages. For older ones each colour would be written twice. */
const CSS_TARGET = ["chrome123", "firefox128", "safari17.5"];
/** Smallest size that is compressed, in bytes; smaller files gain nothing. */
const LEAST_COMPRESSED = 512;

const source = (name) => join(WEB, name);
const sha256 = (data) => createHash("sha256").update(data).digest("hex");

/** Return a file, or all files of a folder in a fixed order. */
function filesBelow(place) {
  let entries;
  try {
    entries = readdirSync(place, { withFileTypes: true });
  } catch {
    return [place];
  }
  return entries
    .sort((one, other) => (one.name < other.name ? -1 : 1))
    .flatMap((entry) => (entry.isDirectory() ? filesBelow(join(place, entry.name)) : [join(place, entry.name)]));
}

/** Return one hash of all sources of the page; `tools/check_page.py` computes the same. */
function hashOfSources() {
  const hash = createHash("sha256");
  const names = SOURCES.flatMap((place) => filesBelow(source(place))).map((path) =>
    relative(WEB, path).split(sep).join("/"),
  );
  for (const name of names.sort()) hash.update(`${name}\0${sha256(readFileSync(source(name)))}\n`);
  return hash.digest("hex");
}

/** Plugin that leaves out `shield.css`: it keeps out the styles of a host page, which do not exist here, and costs time. */
const unshielded = {
  name: "unshielded",
  enforce: "pre",
  load: (id) => (/\/style\/shield\.css\?inline$/.test(id) ? "" : null),
};

/** Plugin that leaves out all modules which are only imported dynamically. */
const withoutLater = { name: "without-later", resolveDynamicImport: (name) => ({ id: String(name), external: true }) };

/** Bundle the page; return its chunks. */
async function bundle({ plugins = [], codeSplitting } = {}) {
  const result = await build({
    root: source("page"),
    configFile: false,
    logLevel: "warn",
    plugins: [unshielded, ...plugins],
    resolve: {
      alias: [
        { find: /^@agent-rendering\/elements$/, replacement: source("elements/src/index.ts") },
        {
          find: /^@agent-rendering\/elements\/sessions$/,
          replacement: source("elements/src/chat/sessions/sessions.ts"),
        },
        {
          find: /^@agent-rendering\/elements\/(chat|components)$/,
          replacement: source("elements/src/$1/index.ts"),
        },
        { find: /^@agent-rendering\/core$/, replacement: source("core/src/index.ts") },
        { find: /^@agent-rendering\/core\/(.*)$/, replacement: source("core/src/$1.ts") },
      ],
      conditions: ["module", "browser", "production"],
    },
    build: {
      write: false,
      target: "es2022",
      cssTarget: CSS_TARGET,
      modulePreload: false,
      cssMinify: true,
      rolldownOptions: {
        input: { page: source("page/src/main.ts") },
        output: {
          entryFileNames: "[name]-[hash].js",
          chunkFileNames: "[name]-[hash].js",
          ...(codeSplitting && { codeSplitting }),
        },
      },
    },
  });
  return result.output.filter(({ type }) => type === "chunk");
}

/** Return the modules that a chunk needs to run, except those in `without`. */
function modulesOf(chunks, chunk, without = new Set()) {
  const seen = new Set([chunk]);
  for (const one of seen) for (const name of one.imports) seen.add(chunks.find(({ fileName }) => fileName === name));
  return new Set([...seen].flatMap(({ moduleIds }) => moduleIds).filter((id) => !without.has(id)));
}

/**
 * Bundle the page into few files: one with everything that it needs at the start, one that draws messages and
 * components, and one that requests lists. Two preceding runs find the modules of each file.
 */
async function bundleInFew() {
  const chunks = await bundle();
  const entry = new Set((await bundle({ plugins: [withoutLater] })).flatMap(({ moduleIds }) => moduleIds));
  const others = (path) =>
    modulesOf(
      chunks,
      chunks.find(({ facadeModuleId }) => facadeModuleId === source(path)),
      entry,
    );
  const named = [
    ["page", entry],
    ["drawing", others("elements/src/index.ts")],
    ["chats", others("core/src/sessions/chats.ts")],
  ];
  const groups = named.map(([name, modules], at) => ({
    name,
    priority: named.length - at,
    test: (id) => modules.has(id),
  }));
  // With the dependencies of its modules, the first group would include exports of `elements/chat` that the page does
  // not use.
  const made = await bundle({ codeSplitting: { groups, includeDependenciesRecursively: false } });
  const { imports } = made.find(({ isEntry }) => isEntry);
  if (imports.length > 0) throw new Error(`page: the first file imports others: ${imports.join(", ")}`);
  return made;
}

/** Return a style sheet with everything that it imports. */
async function style(path) {
  const result = await build({
    root: source("page"),
    configFile: false,
    logLevel: "warn",
    build: {
      write: false,
      cssMinify: true,
      target: "es2022",
      cssTarget: CSS_TARGET,
      rolldownOptions: { input: source(path) },
    },
  });
  const [asset] = result.output.filter(({ fileName }) => fileName.endsWith(".css"));
  return String(asset.source).trim();
}

/**
 * Return a style sheet without the rules that match nothing in a document: those that name a class, or a custom
 * element, that the document does not have. Elements that a script draws later bring their own styles.
 */
function styleOf(css, html) {
  const classes = new Set([...html.matchAll(/class="([^"]*)"/g)].flatMap(([, names]) => names.split(" ")));
  const known = (part) => {
    if (part.type === "class") return classes.has(part.name);
    if (part.type === "type") return !part.name.includes("-") || html.includes(`<${part.name}>`);
    const inner = part.type === "pseudo-class" && ["is", "where"].includes(part.kind) ? part.selectors : null;
    return inner === null || inner.some((selector) => selector.every(known));
  };
  const { code } = transform({
    filename: "early.css",
    code: Buffer.from(css),
    minify: true,
    visitor: {
      Rule: {
        style: ({ value: { selectors } }) => (selectors.some((selector) => selector.every(known)) ? undefined : []),
      },
    },
  });
  return code.toString().trim();
}

/** Return the module that reads the output of programs. */
async function printedModule() {
  const { output } = await build({
    configFile: false,
    logLevel: "warn",
    build: {
      write: false,
      target: "es2022",
      minify: false,
      rolldownOptions: {
        input: { printed: source("core/src/printed.ts") },
        preserveEntrySignatures: "strict",
        output: { entryFileNames: "[name].js" },
      },
    },
  });
  return `// Made by make web from web/core/src/printed.ts.\n${output[0].code.trim()}\n`;
}

const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_LGWIN]: 22 } };

const chunks = await bundleInFew();
const entry = chunks.find(({ isEntry }) => isEntry);
const files = new Map(chunks.map(({ fileName, code }) => [fileName, Buffer.from(code)]));
const icon = readFileSync(source("page/src/icon.svg"), "utf8").trim();
files.set("icon.svg", Buffer.from(`${icon}\n`));
const frame = readFileSync(source("page/index.html"), "utf8");
const early = readFileSync(source("page/src/early.js"), "utf8").replace("%SCRIPT%", entry.fileName);
const parts = {
  PRELOADS: [entry.fileName, ...entry.imports]
    .map((name) => `<link rel="modulepreload" href="_static/${name}">`)
    .join("\n"),
  EARLY: (await minify("early.js", early)).code.trim(),
  STYLE: (await style("page/src/page.css")) + styleOf(await style("page/src/early.css"), frame),
  ICON: icon.replace("<svg ", '<svg aria-hidden="true" '),
};
const page = frame.replace(/%([A-Z]+)%/g, (_, name) => parts[name]);
files.set("index.html", Buffer.from(page));

for (const name of readdirSync(STATIC)) if (!KEPT.has(name)) rmSync(join(STATIC, name), { recursive: true });
const manifest = { sources: hashOfSources(), first: ["index.html", entry.fileName, ...entry.imports], files: {} };
for (const [name, data] of [...files].sort(([one], [other]) => (one < other ? -1 : 1))) {
  const made = { sha256: sha256(data), bytes: data.length };
  writeFileSync(join(STATIC, name), data);
  if (data.length >= LEAST_COMPRESSED) {
    const packed = { br: brotliCompressSync(data, BROTLI), gz: gzipSync(data, { level: 9 }) };
    for (const [ending, bytes] of Object.entries(packed)) {
      writeFileSync(join(STATIC, `${name}.${ending}`), bytes);
      made[ending] = bytes.length;
    }
  }
  manifest.files[name] = made;
}
writeFileSync(join(STATIC, "inspect", "printed.js"), await printedModule());
writeFileSync(join(STATIC, "manifest.json"), `${JSON.stringify(manifest, null, 1)}\n`);
const first = manifest.first.reduce((sum, name) => sum + (manifest.files[name].gz ?? 0), 0);
console.log(`page: ${files.size} files, first load ${(first / 1024).toFixed(1)} KiB gz`);
