/** The page without a framework and without a build step, from the packed elements. */

import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ArpServer } from "../../core/tests/server.js";
import { differing, hostile, looks as looksInside, steady } from "../../elements/tests/browser/hostile.js";
import { APP, pack } from "../src/application.js";
import { answered, launch, open, say } from "../src/browser.js";
import { drawsEveryType, namesDoNothing } from "../src/checks.js";

const EXAMPLE = fileURLToPath(new URL("../../../examples/plain_page/", import.meta.url));
const KINDS: { [suffix: string]: string } = { ".html": "text/html", ".js": "text/javascript" };

const DOCS = fileURLToPath(new URL("../../../docs/", import.meta.url));

/** Return the first HTML block of a page of the docs as a document, with an agent and the packed elements. */
async function fromTheDocs(name: string, agentUrl: string): Promise<string> {
  const text = await readFile(join(DOCS, name), "utf8");
  const block = /^```html\n(.*?)^```$/ms.exec(text)?.[1] ?? "";
  expect(block).toContain("http://127.0.0.1:8080");
  const imports = JSON.stringify({ imports: { "@agent-rendering/elements": "/arp/arp.js" } });
  const before = `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><script type="importmap">${imports}</script>`;
  const elements = block.includes("<script") ? "" : '<script type="module" src="/arp/arp.js"></script>';
  return before + elements + block.replaceAll("http://127.0.0.1:8080", agentUrl);
}

let folder: string;
let files: Server;
let agent: ArpServer;
let browser: Browser;
let url: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "arp-fresh-plain-"));
  const { elements } = await pack();
  await promisify(execFile)("tar", ["-xzf", elements, "-C", folder]);
  await cp(join(EXAMPLE, "index.html"), join(folder, "index.html"));
  await cp(join(folder, "package", "dist", "standalone"), join(folder, "arp"), { recursive: true });
  files = createServer(async ({ url: path = "/" }, response) => {
    const name = normalize(new URL(path, "http://x").pathname).replace(/\/$/, "/index.html");
    const found = await readFile(join(folder, name)).catch(() => null);
    response.writeHead(found ? 200 : 404, { "content-type": KINDS[extname(name)] ?? "text/plain" });
    response.end(found);
  });
  await new Promise<void>((resolve) => files.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${(files.address() as AddressInfo).port}`;
  [agent, browser] = await Promise.all([ArpServer.start(APP, "--origin", origin), launch()]);
  for (const name of ["web.md", "theming.md"])
    await writeFile(join(folder, `${name}.html`), await fromTheDocs(name, agent.url));
  url = `${origin}/?agent=${encodeURIComponent(agent.url)}`;
});

afterAll(async () => {
  await browser.close();
  await agent.stop();
  files.close();
  await rm(folder, { recursive: true, force: true });
});

test("a plain page has a chat, draws a custom component, and loads nothing from other hosts", async () => {
  const { page, faults } = await open(browser, url);
  await say(page, "rating");
  const button = page.locator("arp-chat arp-own button");
  await button.waitFor();
  await button.click();
  await answered(page, "Heard rate {'stars': 4}");
  expect(faults).toEqual([]);
  await page.close();
});

test("the HTML block in docs/web.md is a working chat", async () => {
  const { page, faults } = await open(browser, new URL("/web.md.html", url).href);
  await say(page, "hello");
  await answered(page, "You said: hello");
  expect(faults).toEqual([]);
  await page.close();
});

test("the HTML block in docs/theming.md changes colours and shapes of the chat", async () => {
  const { page, faults } = await open(browser, new URL("/theming.md.html", url).href);
  await say(page, "hello");
  await answered(page, "You said: hello");
  const looks = await page.evaluate(() => {
    const of = (selector: string) => getComputedStyle(document.querySelector(selector) as Element);
    const probe = (name: string, className: string) => {
      const element = Object.assign(document.createElement(name), { className });
      document.querySelector("arp-chat .arp-log")?.append(element);
      return element;
    };
    const [button, card] = [probe("button", "arp-button"), probe("div", "arp-card")];
    const [ofButton, ofCard, ofLog] = [getComputedStyle(button), getComputedStyle(card), of("arp-chat .arp-log")];
    const found = [
      ofButton.backgroundColor,
      ofButton.color,
      ofLog.fontFamily.split(",")[0],
      ofCard.borderTopLeftRadius,
    ];
    button.remove();
    card.remove();
    return found;
  });
  expect(looks).toEqual(["rgb(10, 125, 79)", "rgb(255, 255, 255)", "Inter", "4px"]);
  expect(faults).toEqual([]);
  await page.close();
});

test("W1: one element draws every type of the catalog, none as JSON", async () => {
  const { page, faults } = await open(browser, url);
  await say(page, "all");
  await answered(page, "That is all.");
  await drawsEveryType(page);
  expect(faults).toEqual([]);
  await page.close();
});

test("W84: a component that throws shows the error card, and the rest of the chat works", async () => {
  const { page } = await open(browser, url);
  await say(page, "broken");
  await page.locator("arp-chat arp-own .arp-failure").waitFor();
  await answered(page, "Behind it.");
  await say(page, "hello");
  await answered(page, "You said: hello");
  await page.close();
});

test("W11: a chat has one connection, also when it is moved, and none when it is removed; put back, it works and follows again", async () => {
  const { page, faults, sockets } = await open(browser, url);
  await say(page, "hello");
  await answered(page, "You said: hello");
  await page.evaluate(() => {
    const chat = document.querySelector("arp-chat") as HTMLElement;
    document.body.append(Object.assign(document.createElement("section"), { id: "other" }));
    (document.querySelector("#other") as HTMLElement).style.height = "100%";
    document.querySelector("#other")?.append(chat);
  });
  await say(page, "moved");
  await answered(page, "You said: moved");
  await answered(page, "You said: hello"); // the same conversation
  expect(sockets.size).toBe(1);
  const chat = await page.evaluateHandle(() => document.querySelector("arp-chat") as HTMLElement);
  await chat.evaluate((chat) => chat.remove());
  await expect.poll(() => sockets.size).toBe(0);
  await chat.evaluate((chat) => document.querySelector("#other")?.append(chat));
  await say(page, "all");
  await answered(page, "That is all.");
  expect(sockets.size).toBe(1);
  // The question is at the top again, and the answer below it.
  const asked = page.locator(".arp-bubble", { hasText: /^all$/ }).last();
  await expect
    .poll(() =>
      asked.evaluate(
        (one) =>
          one.getBoundingClientRect().top - (one.closest(".arp-scroller") as Element).getBoundingClientRect().top,
      ),
    )
    .toBeLessThan(60);
  expect(
    await asked.evaluate(
      (one) => one.getBoundingClientRect().top >= (one.closest(".arp-scroller") as Element).getBoundingClientRect().top,
    ),
  ).toBe(true);
  expect(faults).toEqual([]);
  await page.close();
});

test("W78: no name of a prop has an effect", async () => {
  const { page, faults } = await open(browser, url);
  await say(page, "hello");
  await answered(page, "You said: hello");
  const shown = await page.evaluate(() => {
    const [mark, run] = ["<img src=x onerror=\"document.title='broken'\">", "document.title='broken'"];
    // Without the server, which removes such props.
    const names = JSON.parse(
      JSON.stringify({
        innerHTML: mark,
        outerHTML: mark,
        srcdoc: mark,
        onclick: run,
        onClick: run,
        ONCLICK: run,
        onerror: run,
        style: "position: fixed",
        class: "evil",
        className: "evil",
        slot: "evil",
        is: "x-evil",
        key: "evil",
        ref: "evil",
        children: "evil",
      }).replace("{", '{"__proto__":{"evil":"evil"},'),
    );
    const types = [
      "text",
      "markdown",
      "status-card",
      "table",
      "code-block",
      "diff",
      "key-value",
      "progress",
      "chart",
      "image",
      "product-cards",
      "form",
      "confirm",
      "choices",
      "text-input",
      "group",
      "tabs",
      "split",
      "x-nobody-knows",
    ];
    for (const type of types) {
      const element = Object.assign(document.createElement("arp-component"), {
        component: { id: type, type, props: names },
      });
      document.querySelector("arp-chat .arp-log")?.append(element);
    }
    return types.length;
  });
  await expect.poll(() => page.locator("arp-chat .arp-log > arp-component > *").count()).toBe(shown);
  await page.waitForLoadState("networkidle");
  await namesDoNothing(page);
  expect(faults).toEqual([]);
  await page.close();
});

/** Return the computed styles of elements outside of the chat, and of their pseudo-elements. */
function looks(): string[] {
  const outside = [document.documentElement, document.body, ...document.querySelectorAll("#outside, #outside *")];
  return outside.flatMap((one) =>
    [null, "::before", "::after", "::marker", "::placeholder", "::backdrop"].map((part) => {
      const style = getComputedStyle(one, part);
      return `${one.localName}${part ?? ""} ${[...style].map((name) => `${name}: ${style.getPropertyValue(name)}`).join("; ")}`;
    }),
  );
}

test("W75: our styles change nothing outside of the chat", async () => {
  const { page, faults } = await open(browser, url);
  const tags = [
    ...[
      "a",
      "abbr",
      "article",
      "aside",
      "blockquote",
      "button",
      "code",
      "dd",
      "del",
      "details",
      "dialog",
      "dl",
      "dt",
      "em",
      "fieldset",
      "figure",
      "footer",
      "form",
    ],
    ...[
      "h1",
      "h2",
      "h3",
      "h4",
      "header",
      "hr",
      "img",
      "input",
      "ins",
      "kbd",
      "label",
      "legend",
      "li",
      "main",
      "mark",
      "meter",
      "nav",
      "ol",
      "p",
      "pre",
      "progress",
    ],
    ...[
      "section",
      "select",
      "small",
      "span",
      "strong",
      "summary",
      "sup",
      "svg",
      "table",
      "tbody",
      "td",
      "textarea",
      "th",
      "thead",
      "tr",
      "ul",
    ],
  ];
  await say(page, "all");
  await answered(page, "That is all.");
  await page.evaluate((tags) => {
    const outside = Object.assign(document.createElement("div"), { id: "outside" });
    outside.append(
      ...tags.map((tag) =>
        Object.assign(document.createElement(tag), { className: "card button title message table icon chat" }),
      ),
    );
    outside.hidden = false;
    document.body.append(outside);
  }, tags);
  const withUs = await page.evaluate(looks);
  const sheets = await page.evaluate(() => {
    const count = document.adoptedStyleSheets.length;
    document.adoptedStyleSheets = [];
    document.querySelector("arp-chat")?.remove();
    return count;
  });
  const withoutUs = await page.evaluate(looks);
  expect(sheets).toBeGreaterThan(0);
  expect(withUs.length).toBe(withoutUs.length);
  const differing = withUs.flatMap((line, at) => {
    const other = new Set((withoutUs[at] as string).split("; "));
    return line
      .split("; ")
      .filter((one) => !other.has(one))
      .map((one) => `${line.split(" ")[0]} ${one}`);
  });
  expect(differing).toEqual([]);
  expect(faults).toEqual([]);
  await page.close();
});

test("W75: a host's rules for bare elements do not change the look of the chat, and it works", async () => {
  const { page, faults } = await open(browser, url);
  await say(page, "all");
  await answered(page, "That is all.");
  await page.waitForLoadState("networkidle");
  await page.emulateMedia({ reducedMotion: "reduce" });
  await page.evaluate(steady);
  const before = await page.evaluate(looksInside);
  await page.evaluate(hostile);
  expect(differing(before, await page.evaluate(looksInside))).toEqual([]);
  await say(page, "hello");
  await answered(page, "You said: hello");
  expect(faults).toEqual([]);
  await page.close();
});
