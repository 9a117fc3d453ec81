/** Commands of a session: the list at the message box, and the menus of commands with choices. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";

import { faultsOfAxe } from "../src/axe.js";
import { APP, ArpServer, ask, box, log, online } from "../src/host.js";
import { begin, faults, page, useServer } from "../src/stage.js";

useServer();

let folder: string;
let coder: ArpServer;

const start = (...flags: string[]) =>
  ArpServer.start(`${APP}:coder`, "--ledger", `sqlite:${join(folder, "ledger.db")}`, ...flags);

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "arp-commands-"));
  coder = await start();
});
afterAll(async () => {
  await coder.stop();
  rmSync(folder, { recursive: true });
});
afterEach(async () => {
  await page.context().close();
  expect(faults.lines).toEqual([]);
});

const enter = (options = {}) => begin({ url: coder.url, ...options });
const menus = () => page.locator(".arp-command-menus arp-menu > button");
const menu = (name: string) => page.getByRole("button", { name, exact: true });
const item = (name: string, checked: boolean) => page.getByRole("menuitemradio", { name, checked });
const options = () => page.getByRole("listbox", { name: "Commands" }).getByRole("option");
const codes = () => options().locator("code").allInnerTexts();
const isFocused = (name: string) => menu(name).evaluate((button) => button === document.activeElement);

describe("the menus of commands with choices", () => {
  test("W31 appear with the session's commands, show the current choice, and switch by mouse", async () => {
    await enter();
    expect(await menus().count()).toBe(0);
    await ask(page, "hello");
    await expect.poll(() => menus().allInnerTexts()).toEqual(["Ask first", "Small 5", "This machine"]);
    await menu("Model: Small 5").click();
    await item("Small 5 About small", true).waitFor();
    await item("Large 5 About large", false).click();
    await log(page).getByText("Coder heard: /model large").waitFor();
    await menu("Model: Large 5").waitFor();
    await menu("Mode: Ask first").click();
    await item("Plan only About plan", false).click();
    await log(page).getByText("(by the function of the app)").waitFor();
    await menu("Mode: Plan only").waitFor();
    expect(await menus().allInnerTexts()).toEqual(["Plan only", "Large 5", "This machine"]);
  });

  test("work by keyboard: Tab reaches them, arrows move, Enter selects, Escape keeps the current choice", async () => {
    await enter();
    await ask(page, "hello");
    await menu("Model: Small 5").waitFor();
    await box(page).focus();
    for (let step = 0; step < 6 && !(await isFocused("Model: Small 5")); step += 1) await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await item("Small 5 About small", true).waitFor();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Escape");
    await item("Small 5 About small", true).waitFor({ state: "hidden" });
    await expect.poll(() => isFocused("Model: Small 5")).toBe(true);
    await page.keyboard.press("ArrowDown");
    await item("Small 5 About small", true).waitFor();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await log(page).getByText("Coder heard: /model large").waitFor();
    await menu("Model: Large 5").waitFor();
  });

  test("are shown after a reload and on another page, follow a change there, and disappear with the commands", async () => {
    await enter();
    await ask(page, "hello");
    await menu("Model: Small 5").waitFor();
    const other = await page.context().newPage();
    await other.goto(page.url());
    await other.getByRole("button", { name: "Model: Small 5" }).waitFor();
    await ask(page, "/model largest");
    await other.getByRole("button", { name: "Model: Large 5, long memory" }).waitFor();
    await page.reload();
    await menu("Model: Large 5, long memory").waitFor();
    await ask(page, "no commands");
    await expect.poll(() => menus().count()).toBe(0);
    await box(page).fill("/");
    expect(await codes()).toEqual(["/mode"]); // the app's own
  });

  test("belong to their chat: another one has none before its first answer", async () => {
    await enter();
    await ask(page, "hello");
    await menu("Model: Small 5").waitFor();
    await page.locator(".page-side .page-new").click();
    await page.locator(".arp-welcome").waitFor();
    expect(await menus().count()).toBe(0);
    await page.locator(".arp-session", { hasText: "hello" }).locator("a").first().click();
    await menu("Model: Small 5").waitFor();
  });

  test("are shown again after a restart of the server", async () => {
    await enter();
    await ask(page, "hello");
    await ask(page, "/model large");
    await menu("Model: Large 5").waitFor();
    const { port } = new URL(coder.url);
    await coder.stop();
    coder = await start("--port", port);
    await online(page);
    faults.lines.splice(
      0,
      faults.lines.length,
      ...faults.lines.filter((line) => !line.includes("ERR_CONNECTION_REFUSED")),
    );
    await page.reload();
    await menu("Model: Large 5").click();
    await item("Small 5 About small", false).click();
    await menu("Model: Small 5").waitFor();
  });
});

describe("the list at the message box", () => {
  test("W31 follows the session's commands, and after a name lists its choices", async () => {
    await enter();
    await box(page).fill("/");
    expect(await codes()).toEqual(["/mode"]);
    await box(page).fill("");
    await ask(page, "hello");
    await box(page).pressSequentially("/");
    await expect.poll(codes).toEqual(["/mode", "/compact", "/model", "/provider"]);
    await box(page).pressSequentially("model");
    await box(page).press("Enter");
    expect(await box(page).inputValue()).toBe("/model ");
    await expect.poll(codes).toEqual(["small", "large", "largest"]);
    expect(await options().first().getAttribute("aria-current")).toBe("true");
    await box(page).pressSequentially("la");
    await expect.poll(codes).toEqual(["large", "largest"]);
    await box(page).press("ArrowDown");
    expect(await box(page).getAttribute("aria-activedescendant")).toBe(await options().nth(1).getAttribute("id"));
    await box(page).press("Enter");
    expect(await box(page).inputValue()).toBe("/model largest");
    expect(await options().count()).toBe(0);
    await box(page).press("Enter");
    await menu("Model: Large 5, long memory").waitFor();
  });

  test("a fully typed choice is sent by Enter, and a hint is not a choice", async () => {
    await enter();
    await ask(page, "hello");
    await menu("Model: Small 5").waitFor();
    await box(page).pressSequentially("/model large");
    expect(await options().count()).toBe(0);
    await box(page).press("Enter");
    await menu("Model: Large 5").waitFor();
    await box(page).pressSequentially("/compact the tests");
    expect(await options().count()).toBe(0);
    await box(page).press("Enter");
    await log(page).getByText("Coder heard: /compact the tests").waitFor();
  });
});

describe.each([
  ["1440×900", { viewport: { width: 1440, height: 900 } }],
  ["390×844", { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }],
  ["320×640, from right to left", { viewport: { width: 320, height: 640 }, locale: "ar" }],
])("at %s", (name, options) => {
  test("the menus are in the message box, are large enough, open inside of the window, and axe finds no faults", async () => {
    await enter(options);
    await box(page).fill("hello");
    await box(page).press("Enter");
    await expect.poll(() => menus().count()).toBe(3);
    const { width = 0, height = 0 } = page.viewportSize() ?? {};
    const form = await page.locator(".arp-composer").boundingBox();
    const send = await page.locator(".arp-composer [type=submit]").boundingBox();
    expect(send?.width).toBe(send?.height);
    const least = "isMobile" in options ? 44 : 24;
    for (const one of await menus().all()) {
      const at = await one.boundingBox();
      expect(at && form && at.x >= form.x && at.x + at.width <= form.x + form.width).toBe(true);
      expect(Math.min(at?.width ?? 0, at?.height ?? 0)).toBeGreaterThanOrEqual(least);
    }
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
    await menus().nth(1).click();
    const list = page.locator(".arp-menu-list:popover-open");
    await list.getByRole("menuitemradio").nth(2).waitFor();
    const at = await list.boundingBox();
    expect(at && at.x >= 0 && at.y >= 0 && at.x + at.width <= width && at.y + at.height <= height).toBe(true);
    if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/commands ${name}.png` });
    expect(await faultsOfAxe(page)).toEqual([]);
    await page.keyboard.press("Escape");
    expect(await faultsOfAxe(page)).toEqual([]);
    if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/commands closed ${name}.png` });
  });
});
