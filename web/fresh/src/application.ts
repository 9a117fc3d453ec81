/** A new application outside of the repository, with the packed packages: installed, type-checked, built, served. */

import { execFile, spawn, type ChildProcess } from "node:child_process";
import { createHash } from "node:crypto";
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { inject } from "vitest";
import { npm, packAll, temporary, type Packed } from "./packing.js";

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const WEB = join(ROOT, "web");
const HERE = join(WEB, "fresh");
const START_MS = 30_000;

export const APP = join(HERE, "app.py");

let packed: Promise<Packed> | undefined;

/** Return the packed packages: those of the whole run (`setup.ts`) if there are any, otherwise pack them. */
export function pack(): Promise<Packed> {
  return (packed ??= makePacked());
}

async function makePacked(): Promise<Packed> {
  const given = inject("packed") as Packed | undefined;
  if (given !== undefined) return given;
  const { files, remove } = await packAll();
  process.once("exit", remove);
  return files;
}

export type Build = "production" | "development";

/** Description of an application. */
export interface Recipe {
  readonly framework: "react" | "vue";
  /** Versions that replace the example's, by package. */
  readonly versions: { readonly [name: string]: string };
  /** Additional packages, with their versions. */
  readonly also?: { readonly [name: string]: string };
  /** Folder with additional pages. */
  readonly pages?: string;
}

/** An application, installed and built. */
export interface Application {
  readonly folder: string;
  /** Serve a build, connected to an agent. */
  serve(agent: string, build?: Build): Promise<{ url: string; stop(): Promise<void> }>;
  /** Make another build; the development build warns of more. */
  build(build: Build): Promise<void>;
  /** Write a page with the markup of a server in its `#app`; return its name. */
  rendered(build: Build, markup: string): Promise<string>;
  /** Run a script of the application; return its output. */
  script(name: string): Promise<string>;
  remove(): Promise<void>;
}

/** Create an application from the example, with the pages of this folder and the snippets of the README. */
export async function application({ framework, versions, also = {}, pages }: Recipe): Promise<Application> {
  const files = await pack();
  const folder = await temporary(framework);
  await cp(join(ROOT, "examples", `${framework}_app`), folder, { recursive: true });
  await writePages(framework, folder);
  if (pages !== undefined) await cp(pages, join(folder, "src", "pages"), { recursive: true });
  const manifest = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
  const local = Object.fromEntries(
    (["core", "elements", framework] as const).map((name) => [`@agent-rendering/${name}`, `file:${files[name]}`]),
  );
  Object.assign(manifest.dependencies, local, also);
  for (const group of [manifest.dependencies, manifest.devDependencies]) {
    for (const name of Object.keys(group)) group[name] = versions[name] ?? group[name];
  }
  await writeFile(join(folder, "package.json"), JSON.stringify(manifest, null, 2));
  const remove = () => rm(folder, { recursive: true, force: true });
  try {
    await npm(folder, "install", "--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error");
    await npm(folder, "run", "build");
  } catch (error) {
    await remove();
    throw error;
  }
  return {
    folder,
    serve: (agent, build = "production") => preview(folder, agent, FOLDERS[build]),
    build: (build) => built(folder, build),
    rendered: (build, markup) => writeRendered(join(folder, FOLDERS[build]), markup),
    script: async (name) =>
      (await run(process.execPath, [name], { cwd: folder, env: { ...process.env, NODE_ENV: "production" } })).stdout,
    remove,
  };
}

/** Return the snippets of a README in the framework's language, in order. */
export async function snippets(framework: Recipe["framework"]): Promise<string[]> {
  const text = await readFile(join(WEB, framework, "README.md"), "utf8");
  const language = framework === "react" ? "tsx" : "vue";
  return [...text.matchAll(new RegExp("^```" + language + "\\n([^]*?)^```$", "gm"))].map(([, code]) => code as string);
}

async function writePages(framework: Recipe["framework"], folder: string): Promise<void> {
  const [suffix, entry] = framework === "react" ? ["tsx", "pages.tsx"] : ["vue", "pages.ts"];
  const pages = join(folder, "src", "pages");
  await mkdir(pages, { recursive: true });
  const names = framework === "react" ? ["draft", "hooks", "names"] : ["Draft", "Hooks", "Names"];
  for (const name of names)
    await cp(join(HERE, framework, `${name}.${suffix}`), join(pages, `${name.toLowerCase()}.${suffix}`));
  await cp(join(HERE, framework, entry), join(folder, "src", entry));
  await cp(join(HERE, framework, "server.mjs"), join(folder, "server.mjs"));
  await cp(join(HERE, "parts.mjs"), join(folder, "src", "parts.mjs"));
  for (const name of ["hydrated.mjs", "hydrate.mjs"]) await cp(join(HERE, framework, name), join(folder, "src", name));
  for (const [number, code] of (await snippets(framework)).entries()) {
    // Here the agent has the same address as the page.
    await writeFile(join(pages, `snippet${number}.${suffix}`), code.replaceAll("http://127.0.0.1:8080", "/"));
  }
  const html = await readFile(join(folder, "index.html"), "utf8");
  await writeFile(join(folder, "pages.html"), html.replace(/\/src\/main\.tsx?/, `/src/${entry}`));
  await writeFile(join(folder, "hydrate.html"), html.replace(/\/src\/main\.tsx?/, "/src/hydrate.mjs"));
  const config = await readFile(join(folder, "vite.config.ts"), "utf8");
  const input =
    'build: { target: "es2022", rolldownOptions: { input: ["index.html", "pages.html", "hydrate.html"] } }, ';
  await writeFile(join(folder, "vite.config.ts"), config.replace("defineConfig({ ", `defineConfig({ ${input}`));
}

const FOLDERS: { readonly [build in Build]: string } = { production: "dist", development: "dist-development" };

async function built(folder: string, build: Build): Promise<void> {
  const env = { ...process.env, NODE_ENV: build };
  await run(process.execPath, [viteOf(folder), "build", "--mode", build, "--outDir", FOLDERS[build]], {
    cwd: folder,
    env,
  });
}

/** Write a page that stores its first node, so that a test can check whether hydration keeps it. */
async function writeRendered(folder: string, markup: string): Promise<string> {
  const html = await readFile(join(folder, "hydrate.html"), "utf8");
  const note = '<script>given = document.querySelector("#app .arp-host")</script>';
  const name = `rendered-${createHash("sha256").update(markup).digest("hex").slice(0, 8)}.html`;
  await writeFile(
    join(folder, name),
    html.replace('<div id="app"></div>', () => `<div id="app">${markup}</div>${note}`),
  );
  return name;
}

function viteOf(folder: string): string {
  return join(folder, "node_modules", "vite", "bin", "vite.js");
}

async function preview(folder: string, agent: string, built: string): Promise<{ url: string; stop(): Promise<void> }> {
  const child = spawn(
    process.execPath,
    [viteOf(folder), "preview", "--host", "127.0.0.1", "--port", "0", "--outDir", built],
    {
      cwd: folder,
      env: { ...process.env, ARP_URL: agent, NO_COLOR: "1", FORCE_COLOR: "0" },
    },
  );
  return { url: await addressOf(child), stop: () => ended(child) };
}

function addressOf(child: ChildProcess): Promise<string> {
  let output = "";
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no page: ${output}`)), START_MS);
    const receive = (data: Buffer) => {
      output += String(data);
      const found = /(http:\/\/127\.0\.0\.1:\d+\/)/.exec(output);
      if (!found) return;
      clearTimeout(timer);
      resolve(found[1] as string);
    };
    child.stdout?.on("data", receive);
    child.stderr?.on("data", receive);
    child.on("exit", (code) => reject(new Error(`the page's server ended (${code}): ${output}`)));
  });
}

async function ended(child: ChildProcess): Promise<void> {
  const over = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGTERM");
  await over;
}
