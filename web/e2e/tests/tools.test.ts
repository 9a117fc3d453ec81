/** Tool calls: progress, arguments, results (webui.md W35, W36). */

import { readFile } from "node:fs/promises";

import type { Locator } from "playwright-core";
import { expect, test } from "vitest";

import { faultsOfAxe } from "../src/axe.js";
import { ask, converse, log, online, say } from "../src/host.js";
import { begin, page, usePages } from "../src/stage.js";

/** The same limit as for all other waiting. */
const LONG = { timeout: 8000 };

usePages();

const step = (tool: string): Locator => page.locator("details.arp-step", { hasText: tool }).last();

/** Unfold a tool call and wait for its content. */
async function unfold(tool: string): Promise<Locator> {
  await step(tool).locator("summary").click();
  await step(tool).locator("arp-tool-detail > *").first().waitFor();
  return step(tool);
}

/** Return the names and values of the arguments; code without the buttons above it. */
function values(shown: Locator): Promise<string[][]> {
  return shown
    .locator("dl.arp-values")
    .first()
    .evaluate((list) =>
      [...list.children].map((row) => {
        const value = row.querySelector("dd") as HTMLElement;
        return [
          row.querySelector("dt")?.textContent?.trim() ?? "",
          (value.querySelector("pre")?.textContent ?? value.innerText).trim(),
        ];
      }),
    );
}

const SQL = "SELECT name, people\nFROM cities\nWHERE name <> 'O\"slo'\n  AND people > 300";

async function showsSql(shown: Locator): Promise<void> {
  expect(await values(shown)).toEqual([
    ["sql", SQL],
    ["limit", "9007199254740993"],
    ["note", "مدن الشمال"],
    ["options", '{\n  "explain": false\n}'],
  ]);
  expect(await shown.locator("table th").allInnerTexts()).toEqual(["name", "people"]);
  expect(
    await shown
      .locator("tbody tr")
      .evaluateAll((rows) => rows.map((row) => [...row.children].map(({ textContent }) => textContent))),
  ).toEqual([
    ["Oslo", "709"],
    ["Zürich <b>", "443"],
  ]);
  expect(await shown.locator("arp-elapsed").innerText()).toMatch(/^1\.[2-9]s$/);
}

test("W35 arguments are laid out: SQL with its lines and colours, a list of rows as a table", async () => {
  await begin();
  await ask(page, "sql");
  expect(await step("run_sql").getAttribute("open")).toBeNull();
  const shown = await unfold("run_sql");
  await showsSql(shown);
  await shown.locator("arp-code .arp-k-keyword", { hasText: "SELECT" }).waitFor();
  expect(await shown.innerText()).not.toContain("\\n");
  expect(await faultsOfAxe(page)).toEqual([]);
});

test("W35 result and duration are the same after a reload", async () => {
  await begin();
  await ask(page, "sql");
  const took = await step("run_sql").locator("arp-elapsed").innerText();
  await page.reload();
  await online(page);
  await step("run_sql").waitFor();
  expect(await step("run_sql").locator("arp-elapsed").innerText()).toBe(took);
  await showsSql(await unfold("run_sql"));
});

test("W35 W60 a turn from the history has its tools with results, errors and durations", async () => {
  await begin();
  await ask(page, "sql");
  const took = await step("run_sql").locator("arp-elapsed").innerText();
  await ask(page, "long-result");
  await converse(page, 55);
  await page.reload();
  await online(page);
  await log(page).getByText("You said: turn 55", { exact: true }).waitFor();
  expect(await step("run_sql").count()).toBe(0);
  await page.mouse.move(500, 300);
  await page.mouse.wheel(0, -100_000);
  await step("run_sql").waitFor({ state: "attached" });
  await showsSql(await unfold("run_sql"));
  expect(await step("run_sql").locator("arp-elapsed").innerText()).toBe(took);
  expect(await (await unfold("shut_gate")).locator("p.arp-bad").innerText()).toBe("The gate is stuck.");
  expect(await (await unfold("read_log")).getByRole("link", { name: "Whole result" }).count()).toBe(1);
});

test("W35 a running tool shows its progress with a bar, without an announcement of each step", async () => {
  await begin();
  await page.evaluate(() => {
    const lines: string[] = [];
    Object.assign(globalThis, { lines });
    for (const place of document.querySelectorAll(".arp-status, .arp-spoken, .arp-urgent")) {
      new MutationObserver(() => lines.push((place as HTMLElement).innerText)).observe(place, {
        childList: true,
        subtree: true,
        characterData: true,
      });
    }
  });
  await say(page, "load 4");
  const bar = page.getByRole("progressbar", { name: "Running load" });
  await bar.waitFor();
  const line = step("load").locator("summary");
  const shown = () =>
    line.evaluate((one) => {
      const { value, max, ariaValueText } = one.querySelector("progress") ?? { value: 0, max: 0, ariaValueText: null };
      return [one.querySelector(".arp-step-said")?.textContent, value, max, ariaValueText];
    });
  await expect.poll(shown, { ...LONG, interval: 20 }).toEqual(["Reading report-3.csv", 2, 4, "2 of 4 done"]);
  expect(await step("load").getAttribute("open")).toBeNull();
  expect(await faultsOfAxe(page)).toEqual([]);
  await line.getByText("Sorting what was found⟨U+202E⟩").waitFor(); // the latest progress replaces the previous one
  expect(await bar.count()).toBe(0);
  await log(page).getByText("All are read.").waitFor();
  expect(await line.locator(".arp-step-progress").count()).toBe(0);
  expect(await values(await unfold("load"))).toEqual([["folder", "/srv/reports"]]);
  const sent = await page.evaluate(() => (globalThis as unknown as { lines: string[] }).lines.join("\n"));
  expect(sent).not.toMatch(/Reading|Sorting|of 4/);
});

test("W35 the beginning of a long result is shown, and a link opens all of it", async () => {
  await begin();
  await ask(page, "long-result 200");
  const shown = await unfold("read_log");
  const beginning = await shown.getByRole("group", { name: "Result" }).innerText();
  expect(beginning).toMatch(/^line 0 x+\nline 1 x+\n[^]*…$/);
  expect(beginning.length).toBeLessThanOrEqual(2048);
  const [file] = await Promise.all([
    page.waitForEvent("download"),
    shown.getByRole("link", { name: "Whole result" }).click(),
  ]);
  const whole = await readFile(await file.path(), "utf8");
  expect(whole.split("\n")).toHaveLength(200);
  expect(whole.startsWith(beginning.slice(0, -1))).toBe(true);
  expect(file.suggestedFilename()).toBe("read_log.txt");
});

test("W35 W80 code has its lines and colours, an error its text, and misleading characters are visible", async () => {
  await begin();
  await ask(page, "long-result 1");
  const code = await unfold("run_code");
  expect(await values(code)).toEqual([
    ["language", "python"],
    ["code", "import sys\n\nfor berth in sys.argv:\n    print(berth)"],
  ]);
  await code.locator(".arp-k-keyword", { hasText: "import" }).waitFor();
  expect(await code.getByRole("group", { name: "Result" }).innerText()).toBe("berth 1\nberth 2⟨U+202E⟩");
  expect(await code.getByRole("link").count()).toBe(0);
  const failed = await unfold("shut_gate");
  expect(await values(failed)).toEqual([["command", "gate --shut 4"]]);
  expect(await failed.locator("p.arp-bad").innerText()).toBe("The gate is stuck.");
  expect(await failed.getAttribute("data-state")).toBe("failed");
});

test("W35 W68 W72 at 320 pixels and from right to left everything fits, and code stays left to right", async () => {
  await begin({ viewport: { width: 320, height: 640 }, locale: "ar" });
  await ask(page, "sql");
  await ask(page, "long-result");
  for (const tool of ["run_sql", "read_log", "run_code", "shut_gate"]) await unfold(tool);
  const wide = await page.evaluate(() => {
    const within = document.querySelector("arp-chat .arp-log")?.getBoundingClientRect() as DOMRect;
    const shown = [...document.querySelectorAll(".arp-step, arp-tool-detail > *, .arp-values > div")].map((one) =>
      one.getBoundingClientRect(),
    );
    return [
      document.documentElement.scrollWidth,
      shown.filter(({ left, right }) => left < within.left - 1 || right > within.right + 1).length,
    ];
  });
  expect(wide).toEqual([320, 0]);
  expect(
    await step("run_sql")
      .locator("pre.arp-pre")
      .evaluate((one) => getComputedStyle(one).direction),
  ).toBe("ltr");
  expect(
    await step("run_sql")
      .locator("dl")
      .first()
      .evaluate((one) => getComputedStyle(one).direction),
  ).toBe("rtl");
  await step("read_log").getByRole("link", { name: "النتيجة كاملة" }).waitFor();
  await say(page, "load 2");
  await page.getByRole("progressbar").waitFor();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(320);
  await expect.poll(() => step("load").getAttribute("data-state"), LONG).toBe("done");
});
