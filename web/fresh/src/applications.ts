/** Tests of the packed packages in a new application, in a browser with a real server. */

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ArpServer } from "../../core/tests/server.js";
import { APP, application, snippets, type Application, type Recipe } from "./application.js";
import { answered, launch, open, say } from "./browser.js";
import { drawsEveryType, namesDoNothing } from "./checks.js";

/**
 * Define the tests of an application.
 *
 * @param major Major version of the framework, as it reports it on the server.
 */
export function suite(name: string, major: string, recipe: Recipe): void {
  describe(name, () => inApplication(major, recipe));
}

function inApplication(major: string, recipe: Recipe): void {
  let agent: ArpServer;
  let browser: Browser;
  let app: Application;
  let served: Awaited<ReturnType<Application["serve"]>>;

  beforeAll(async () => {
    [agent, browser] = await Promise.all([ArpServer.start(APP), launch()]);
    // Installs, checks the types of example, snippets and the draft's code, and builds.
    app = await application(recipe);
    served = await app.serve(agent.url);
  });

  afterAll(async () => {
    await served?.stop();
    await app?.remove();
    await browser?.close();
    await agent?.stop();
  });

  test("W1: one line draws every type of the catalog, none as JSON", async () => {
    const { page, faults } = await open(browser, served.url);
    await say(page, "all");
    await answered(page, "That is all.");
    await drawsEveryType(page);
    expect(faults).toEqual([]);
    await page.close();
  });

  test("a custom component is drawn in the chat, and its action reaches the agent", async () => {
    const { page, faults } = await open(browser, served.url);
    await say(page, "rating");
    const button = page.locator("arp-chat arp-place button");
    await button.waitFor();
    expect(await button.textContent()).toBe("★★★★");
    await button.click();
    await answered(page, "Heard rate {'stars': 4}");
    expect(faults).toEqual([]);
    await page.close();
  });

  test("W84: a component that throws shows the error card, and the rest of the chat works", async () => {
    const { page } = await open(browser, served.url);
    await say(page, "broken");
    await page.locator("arp-chat arp-place .arp-failure").waitFor();
    await answered(page, "Behind it.");
    await say(page, "hello");
    await answered(page, "You said: hello");
    await page.close();
  });

  test("W78: no name of a prop has an effect, even in a component that passes all its props to the DOM", async () => {
    const { page, faults } = await open(browser, `${served.url}pages.html?page=names`);
    await say(page, "names");
    await answered(page, "Those were all.");
    const own = page.locator("arp-chat arp-place .spread");
    await own.waitFor();
    expect(await own.getAttribute("stars")).toBe("1"); // a name without such a meaning is passed
    await namesDoNothing(page);
    expect(faults).toEqual([]);
    await page.close();
  });

  test("W11: a page has one connection, also in strict mode", async () => {
    const { page, sockets } = await open(browser, served.url);
    await say(page, "hello");
    await answered(page, "You said: hello");
    expect(sockets.size).toBe(1);
    await page.close();
  });

  test("W11 W83: hooks connect once, reconnect, and render a message again only when it has changed", async () => {
    const { page, faults, sockets } = await open(browser, `${served.url}pages.html?page=hooks`);
    const drawn = (at: number) => page.locator("li").nth(at).getAttribute("data-drawn");
    const ask = async (text: string) => {
      await page.getByRole("textbox").fill(text);
      await page.getByRole("button", { name: "Send" }).click();
      await page.locator("li", { hasText: `You said: **${text}**` }).waitFor();
      await page.getByText("idle", { exact: true }).waitFor();
    };
    await page.getByText("online", { exact: true }).waitFor();
    await ask("one");
    const [question, answer] = [await drawn(0), await drawn(1)];
    await ask("two");
    expect(await page.locator("li").count()).toBe(4);
    expect([await drawn(0), await drawn(1)]).toEqual([question, answer]);
    expect(sockets.size).toBe(1);
    await page.getByRole("button", { name: "Leave" }).click();
    await page.getByText("away", { exact: true }).waitFor();
    await expect.poll(() => sockets.size).toBe(0);
    await page.getByRole("button", { name: "Come back" }).click();
    await page.getByText("online", { exact: true }).waitFor();
    await ask("three");
    expect([await page.locator("li").count(), sockets.size]).toEqual([6, 1]);
    expect(faults).toEqual([]);
    await page.close();
  });

  test("W82: code for the draft's package runs with a changed package name", async () => {
    const { page, faults } = await open(browser, `${served.url}pages.html?page=draft`);
    await page.getByRole("heading", { name: /^session / }).waitFor();
    await page.locator("b", { hasText: "raw" }).waitFor();
    await page.getByRole("button", { name: "Widget" }).click();
    await page.waitForFunction(() => document.title === "clicked");
    await page.getByRole("button", { name: "say", exact: true }).click();
    await page.locator("arp-message", { hasText: "You said" }).first().waitFor();
    await say(page, "hello");
    await page.waitForFunction(
      () => document.body.dataset.sent === "hello" && (document.body.dataset.session ?? "") !== "",
    );
    expect(faults).toEqual([]);
    await page.close();
  });

  test("every snippet of the README runs", async () => {
    const count = (await snippets(recipe.framework)).length;
    expect(count).toBeGreaterThan(3);
    for (let number = 0; number < count; number += 1) {
      const { page, faults, sockets } = await open(browser, `${served.url}pages.html?page=snippet${number}`);
      // An empty conversation may draw nothing.
      await expect
        .poll(async () => sockets.size > 0 || (await page.locator("#app > *").count()) > 0, { timeout: 15_000 })
        .toBe(true);
      await page.waitForLoadState("networkidle");
      expect([number, faults]).toEqual([number, []]);
      await page.close();
    }
  });

  test("the message layout of the README sends and shows messages", async () => {
    const at = (await snippets(recipe.framework)).findIndex((code) => code.includes("sendMessage"));
    const { page, faults } = await open(browser, `${served.url}pages.html?page=snippet${at}`);
    await page.getByText("Connected").waitFor();
    await page.getByRole("textbox", { name: "Message" }).fill("hello");
    await page.getByRole("button", { name: "Send" }).click();
    await page.locator("arp-message strong", { hasText: "hello" }).waitFor();
    expect(faults).toEqual([]);
    await page.close();
  });

  describe("W86: rendered on a server", () => {
    let markup: string;
    let developed: typeof served;

    beforeAll(async () => {
      const printed = await app.script("server.mjs");
      expect(printed.startsWith(`${major} `)).toBe(true);
      markup = printed.slice(major.length + 1).trimEnd();
      await app.build("development");
      developed = await app.serve(agent.url, "development");
    });

    afterAll(() => developed?.stop());

    test("W86: without scripts the text is visible", async () => {
      const page = await browser.newPage({ javaScriptEnabled: false });
      await page.setContent(markup);
      await page.getByRole("heading", { name: "Sales & Söhne" }).waitFor();
      for (const words of ["<Ask>", "Hi", "★★★", "away, 0 messages"])
        await page.getByText(words, { exact: true }).waitFor();
      await page.close();
    });

    test.each(["production", "development"] as const)(
      "W86: hydration has no warning, and the page works: %s",
      async (build) => {
        const { url } = build === "production" ? served : developed;
        const { page, faults, sockets } = await open(browser, `${url}${await app.rendered(build, markup)}`);
        await page.getByText("online, 0 messages", { exact: true }).waitFor();
        expect(await page.evaluate(() => (globalThis as unknown as { given: Element }).given.isConnected)).toBe(true);
        await page.locator("arp-message strong", { hasText: "Bold" }).waitFor();
        await page.locator("arp-progress li", { hasText: "Load" }).waitFor();
        await page.locator("arp-table td", { hasText: "Oslo" }).waitFor();
        await page.locator("arp-chat").getByRole("heading", { name: "Sales & Söhne" }).waitFor();
        expect(await page.locator(".arp-shell").count()).toBe(0);
        await page.locator("arp-chat").getByRole("button", { name: "hello" }).click();
        await answered(page, "You said: hello");
        await page.getByText("online, 2 messages", { exact: true }).waitFor();
        await say(page, "rating");
        await page.locator("arp-chat arp-place button").click();
        await answered(page, "Heard rate {'stars': 4}");
        expect([faults.filter(isOurs), sockets.size]).toEqual([[], 1]);
        await page.close();
      },
    );

    test("W86: a difference is reported, so that the test above can fail", async () => {
      const differing = await app.rendered("development", markup.replace("★★★", "★★"));
      const { page, faults } = await open(browser, `${developed.url}${differing}`);
      await page.getByText("online, 0 messages", { exact: true }).waitFor();
      expect(faults.filter(isOurs).join()).toMatch(/hydrat|did not match/i);
      await page.close();
    });
  });
}

/** Return whether a message is ours: in development builds, Lit reports its mode. */
function isOurs(fault: string): boolean {
  return !fault.startsWith("Lit is in dev mode");
}
