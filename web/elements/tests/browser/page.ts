/** The gallery in the system's Chromium, from a server that sends a strict policy. */

import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium, type Browser, type Page } from "playwright-core";
import { build } from "vite";
import { chromiumPath, needsChromium, withLetters } from "../../../core/tests/chromium.js";

export { chromiumPath };

const GALLERY = fileURLToPath(new URL("../../gallery", import.meta.url));
const AXE = fileURLToPath(new URL("../../../node_modules/axe-core/axe.min.js", import.meta.url));
const TYPES: { readonly [extension: string]: string } = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
};
/** Content security policy of the page of `arp serve`. */
const POLICY =
  "default-src 'self'; img-src 'self' data:; base-uri 'none'; require-trusted-types-for 'script'; trusted-types lit-html";

// With CI=true no test is skipped: a missing Chromium is an error.
if (/^(?:1|true)$/i.test(process.env.CI ?? "")) needsChromium();

/** An open page and its errors. */
export interface Opened {
  readonly page: Page;
  /** Console errors, exceptions and violations of the policy. */
  readonly complaints: string[];
  /** Addresses on other servers that the page requested. */
  readonly foreign: string[];
}

/** A built gallery with its server and browser. */
export class GalleryHost {
  readonly #server: Server;
  readonly #browser: Browser;
  readonly #folder: string;

  private constructor(server: Server, browser: Browser, folder: string) {
    this.#server = server;
    this.#browser = browser;
    this.#folder = folder;
  }

  static async start(): Promise<GalleryHost> {
    const out = await mkdtemp(join(tmpdir(), "arp-gallery-"));
    await build({
      root: GALLERY,
      configFile: join(GALLERY, "vite.config.ts"),
      logLevel: "error",
      build: { outDir: out, emptyOutDir: true },
    });
    const server = createServer((request, response) => {
      const { pathname } = new URL(request.url ?? "/", "http://localhost");
      readFile(join(out, pathname === "/" ? "index.html" : pathname)).then(
        (file) => {
          response.writeHead(200, {
            "content-type": TYPES[extname(pathname)] ?? "text/html",
            "content-security-policy": POLICY,
          });
          response.end(file);
        },
        () => {
          response.writeHead(pathname === "/favicon.ico" ? 204 : 404);
          response.end();
        },
      );
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const browser = await chromium.launch({
      executablePath: needsChromium(),
      env: withLetters(),
      args: ["--no-sandbox"],
    });
    return new GalleryHost(server, browser, out);
  }

  async stop(): Promise<void> {
    await this.#browser.close();
    await new Promise((resolve) => this.#server.close(resolve));
    await rm(this.#folder, { recursive: true });
  }

  /** Open the gallery. `query` is the query of its address. */
  async open(
    query = "",
    options: { width?: number; reducedMotion?: "reduce"; forcedColors?: "active"; deviceScaleFactor?: number } = {},
  ): Promise<Opened> {
    const { width = 808, ...media } = options;
    const context = await this.#browser.newContext({
      viewport: { width, height: 900 },
      locale: "en-GB",
      timezoneId: "UTC",
      ...media,
    });
    const page = await context.newPage();
    const complaints: string[] = [];
    const foreign: string[] = [];
    const own = `http://127.0.0.1:${(this.#server.address() as { port: number }).port}/`;
    page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on(
      "request",
      (request) =>
        !/^(?:data|blob):/.test(request.url()) && !request.url().startsWith(own) && foreign.push(request.url()),
    );
    await page.goto(`${own}?${query}`);
    await page.waitForSelector("html[data-ready]");
    await page.evaluate(waitUntilDrawn);
    return { page, complaints, foreign };
  }
}

/** Wait until some frames have passed and no prose is busy. Runs in the page. */
export async function waitUntilDrawn(): Promise<void> {
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  for (let round = 0; round < 300; round += 1) {
    await frame();
    const isBusy = [...document.querySelectorAll("arp-prose")].some(
      (prose) => (prose as unknown as { busy: boolean }).busy,
    );
    if (!isBusy && round > 4) return;
  }
}

/** Return how many times slower this machine is now than the reference machine when idle; at least 1. */
export async function slowness(page: Page): Promise<number> {
  const took = await page.evaluate(() => {
    const start = performance.now();
    let sum = 0;
    for (let round = 0; round < 60_000_000; round += 1) sum = (sum * 31 + round) | 0;
    return performance.now() - start + (sum === 7 ? 1 : 0);
  });
  return Math.max(1, took / QUIET_MS);
}

/** Time of that loop on the idle reference machine, in ms. */
const QUIET_MS = 410;

/** Return the violations that axe finds. */
export async function axe(page: Page): Promise<string[]> {
  const source = await readFile(AXE, "utf8");
  // Through the debugger, which the policy of the page does not restrict.
  await page.evaluate(source);
  return page.evaluate(async () => {
    const { axe } = globalThis as unknown as {
      axe: { run(options: object): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
    };
    const { violations } = await axe.run({ resultTypes: ["violations"] });
    return violations.map(
      ({ id, nodes }) =>
        `${id} (${nodes.length}): ${nodes
          .slice(0, 3)
          .map(({ html }) => html.slice(0, 160))
          .join(" | ")}`,
    );
  });
}
