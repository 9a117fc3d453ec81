// @vitest-environment node
/** Behaviour of components in a browser: keys, focus, layout, large data. */

import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Page } from "playwright-core";
import { axe, chromiumPath, GalleryHost, waitUntilDrawn } from "./page.js";

interface Doors {
  readonly said: unknown[];
  readonly context: object;
  readonly SAMPLES: { name: string; component: { id: string; type: string; props: Record<string, unknown> } }[];
  createContext(given: object): object;
  render(template: unknown, place: Element): void;
  renderComponent(component: unknown, context: object): unknown;
}

/** The parts of the package that the gallery exposes to tests. */
declare const gallery: Doors;

/** Draw a component at the end of the page, and wait until it is drawn. */
async function show(page: Page, type: string, props: Record<string, unknown>): Promise<void> {
  await page.evaluate(
    ([type, props]) => {
      const place = document.getElementById("shown") ?? Object.assign(document.createElement("div"), { id: "shown" });
      if (!place.isConnected) document.querySelector("main")?.append(place);
      gallery.render(gallery.renderComponent({ id: "shown-one", type, props }, gallery.context), place);
    },
    [type, props] as const,
  );
  await page.evaluate(waitUntilDrawn);
}

/**
 * Return the positions at which the units digits of numbers end, in pixels from the right side of their cells. There is
 * one position if the numbers are aligned.
 */
function pointsOf(cells: Element[]): number[] {
  const ends = cells.flatMap((cell) => {
    const text = cell.firstChild;
    const whole = /^[^\d]*[\d,]+/.exec(text?.textContent ?? "");
    if (!text || !whole) return [];
    const range = document.createRange();
    range.setStart(text, whole[0].length - 1);
    range.setEnd(text, whole[0].length);
    return [cell.getBoundingClientRect().right - range.getBoundingClientRect().right];
  });
  return ends.filter((end, at) => ends.findIndex((other) => Math.abs(other - end) < 0.75) === at);
}

describe.skipIf(chromiumPath === undefined)("components", () => {
  let host: GalleryHost;
  beforeAll(async () => void (host = await GalleryHost.start()), 120_000);
  afterAll(() => host.stop());

  async function opened(query: string, run: (page: Page) => Promise<void>, options = {}): Promise<void> {
    const { page, complaints, foreign } = await host.open(query, options);
    await run(page);
    expect(complaints).toEqual([]);
    expect(foreign).toEqual([]);
    await page.context().close();
  }

  const sentTexts = (page: Page) => page.evaluate(() => gallery.said);

  test("W41 a table is sorted by its headers and filtered with an announced count, and its head stays in view", () =>
    opened("only=table", async (page) => {
      const table = page.locator("[data-name=table]");
      expect(await table.locator("caption").textContent()).toBe("Cities of Norway, 5 rows");
      const firsts = () => table.locator("tbody tr td:first-child").allTextContents();
      await table.getByRole("button", { name: "Founded" }).press("Enter");
      expect(await table.locator("th[aria-sort=ascending]").textContent()).toContain("Founded");
      expect(await firsts()).toEqual(["Trondheim", "Oslo", "Bergen", "Stavanger", "Drammen"]);
      await table.getByRole("button", { name: "Share" }).click();
      await table.getByRole("button", { name: "Share" }).click();
      expect(await firsts()).toEqual(["Oslo", "Bergen", "Trondheim", "Stavanger", "Drammen"]);
      await table.getByRole("searchbox").fill("er");
      expect(await firsts()).toEqual(["Bergen", "Stavanger"].filter((name) => name.includes("er")));
      expect(await table.locator("[role=status]").textContent()).toBe("2 rows of 5 match");
      expect(await sentTexts(page)).toEqual([
        "Sorted by Founded, ascending",
        "Sorted by Share, ascending",
        "Sorted by Share, descending",
      ]);
      expect(
        await table
          .locator("th")
          .first()
          .evaluate((one) => getComputedStyle(one).position),
      ).toBe("sticky");
      expect(await page.locator("[data-name='table tabs'] .arp-marked strong").count()).toBe(1);
    }));

  test("W41 a wide table keeps words together, aligns decimals, and has a shadow where more columns are", () =>
    opened(
      "only=table",
      async (page) => {
        const table = page.locator("[data-name='table wide']");
        for (const width of [1440, 390, 320]) {
          await page.setViewportSize({ width, height: 900 });
          await page.evaluate(waitUntilDrawn);
          // No cell of several words has a line for each word.
          const lines = await table.locator("tbody td:is(:first-child, :nth-child(3))").evaluateAll((cells) =>
            cells.map((cell) => {
              const range = document.createRange();
              range.selectNodeContents(cell);
              return [
                new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size,
                (cell.textContent ?? "").split(" ").length,
              ] as const;
            }),
          );
          for (const [count, words] of lines) expect(count).toBeLessThanOrEqual(Math.max(1, Math.ceil(words / 2)));
          for (const column of [5, 6, 7, 8])
            expect(await table.locator(`td:nth-child(${column})`).evaluateAll(pointsOf)).toHaveLength(1);
          const frame = table.locator(".arp-table-frame");
          const box = table.locator(".arp-table-scroll");
          const shades = () =>
            frame.evaluate((frame) => [
              frame.dataset.more,
              ...["::before", "::after"].map((part) => getComputedStyle(frame, part).opacity),
            ]);
          const scrolled = (left: number) => box.evaluate((box, left) => (box.scrollLeft = left), left);
          await scrolled(0);
          await expect.poll(shades).toEqual(["end", "0", "1"]);
          await scrolled(100);
          await expect.poll(shades).toEqual(["start end", "1", "1"]);
          await scrolled(5000);
          await expect.poll(shades).toEqual(["start", "1", "0"]);
        }
        expect(await page.locator("[data-name='table tabs'] .arp-table-frame").getAttribute("data-more")).toBe("");
        // All numbers of a column have the same decimals, also in a selection.
        const cell = table.locator("tbody tr:nth-child(2) td:nth-child(6)");
        expect(
          await cell.evaluate((cell) => {
            getSelection()?.selectAllChildren(cell);
            return [String(getSelection()), cell.textContent];
          }),
        ).toEqual(["1249.000", "1249.000"]);
        expect(await table.locator("tbody tr").nth(1).ariaSnapshot()).toMatch(/cell "1249\.000"\n.*cell "12\.5 %"/);
      },
      { reducedMotion: "reduce" },
    ));

  test("W41 a wide table from right to left also has its shadow and aligned decimals", () =>
    opened("only=table&locale=ar", async (page) => {
      const table = page.locator("[data-name='table wide']");
      for (const column of [5, 6, 7, 8])
        expect(await table.locator(`td:nth-child(${column})`).evaluateAll(pointsOf)).toHaveLength(1);
      const frame = table.locator(".arp-table-frame");
      await expect.poll(() => frame.getAttribute("data-more")).toBe("end");
      expect(
        await frame.evaluate((frame) => [
          getComputedStyle(frame, "::after").left,
          getComputedStyle(frame, "::before").right,
        ]),
      ).toEqual(["0px", "0px"]);
      await table.locator(".arp-table-scroll").evaluate((box) => (box.scrollLeft = -100));
      await expect.poll(() => frame.getAttribute("data-more")).toBe("start end");
    }));

  test("W41 new rows with more decimals are aligned with the existing rows, also among ten thousand", () =>
    opened("only=confirm", async (page) => {
      const rows = [
        ["a", 1],
        ["b", 20],
      ];
      await show(page, "table", { headers: ["k", "n"], rows });
      expect(await page.locator("#shown [data-lack]").count()).toBe(0);
      await show(page, "table", { headers: ["k", "n"], rows: [...rows, ["c", 3.125]] });
      expect(await page.locator("#shown td:nth-child(2)").evaluateAll(pointsOf)).toHaveLength(1);
      const many = Array.from({ length: 10_000 }, (_, at) => [`r${at}`, at % 3 === 0 ? at : at / 8]);
      await show(page, "table", { headers: ["k", "n"], rows: many });
      const box = page.locator("#shown .arp-table-scroll");
      for (const top of [0, 90_000, 200_000]) {
        await box.evaluate((box, top) => (box.scrollTop = top), top);
        await page.evaluate(waitUntilDrawn);
        expect(await page.locator("#shown tr:not(.arp-spacer) td:nth-child(2)").evaluateAll(pointsOf)).toHaveLength(1);
      }
      // A header has space for its sort icon too. If it were cut at its left, the icon would look like a dot.
      await show(page, "table", {
        headers: ["Amount", "Name"],
        rows: Array.from({ length: 200 }, (_, at) => [at * 1.5, "x"]),
      });
      const cut = (headers: Element[]) => headers.filter((one) => one.scrollWidth > one.clientWidth).length;
      expect(await page.locator("#shown th").evaluateAll(cut)).toBe(0);
    }));

  test("W42 ten thousand rows need few nodes, however far one scrolls, and all are sorted and searched", () =>
    opened("only=confirm", async (page) => {
      const rows = Array.from({ length: 10_000 }, (_, at) =>
        Array.from({ length: 8 }, (_, column) => (column === 1 ? `name ${(at * 7919) % 10_007}` : at * column)),
      );
      await show(page, "table", { headers: ["a", "b", "c", "d", "e", "f", "g", "h"], rows, sortable: true });
      const box = page.locator("#shown .arp-table-scroll");
      const cell = (row: string) => page.locator(`#shown ${row} td`).nth(1).innerText();
      const [made, most] = await box.evaluate(async (box) => {
        const place = document.querySelector("#shown") as HTMLElement;
        let [made, most] = [0, 0];
        const watch = new MutationObserver(
          (changes) => (made += changes.reduce((sum, { addedNodes }) => sum + addedNodes.length, 0)),
        );
        watch.observe(place, { subtree: true, childList: true });
        for (let step = 0; step < 40; step += 1) {
          box.scrollTop += 700;
          await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
          most = Math.max(most, place.querySelectorAll("*").length);
        }
        watch.disconnect();
        return [made, most];
      });
      expect(await page.locator("#shown table").getAttribute("aria-rowcount")).toBe("10001");
      expect(most).toBeLessThanOrEqual(1_500);
      expect(made).toBeLessThanOrEqual(1_500); // row elements are reused, not created again
      expect(await page.locator("#shown [aria-rowindex]").nth(5).isVisible()).toBe(true);
      await box.evaluate((box) => (box.scrollTop = 0));
      await page.locator("#shown .arp-sort").nth(1).click();
      await expect.poll(() => cell("[aria-rowindex='2']")).toBe("name 0");
      await page.locator("#shown input").fill("10006");
      const found = rows.filter((row) => row.some((cell) => String(cell).includes("10006")));
      expect(found.map((row) => row[1])).toContain("name 10006");
      await expect.poll(() => page.locator("#shown tbody tr").count()).toBe(found.length);
    }));

  test("W43 a table is copied as CSV, TSV and Markdown, as it is displayed", () =>
    opened("only=table", async (page) => {
      await page.evaluate(() => {
        const copied: string[] = [];
        Object.assign(globalThis, { copied });
        Object.defineProperty(navigator, "clipboard", {
          value: { writeText: async (text: string) => void copied.push(text) },
        });
      });
      await show(page, "table", {
        headers: ["a", "b"],
        rows: [
          ["=1+1", 2],
          ['x,"y"', null],
        ],
        sortable: true,
      });
      const menu = page.locator("#shown summary");
      for (const format of ["CSV", "TSV", "Markdown"]) {
        await menu.click();
        await page
          .locator("#shown")
          .getByRole("button", { name: `Copy as ${format}` })
          .click();
        await page.waitForFunction(
          (count) => (globalThis as unknown as { copied: string[] }).copied.length === count,
          ["CSV", "TSV", "Markdown"].indexOf(format) + 1,
        );
      }
      expect(await page.evaluate(() => (globalThis as unknown as { copied: string[] }).copied)).toEqual([
        'a,b\r\n\'=1+1,2\r\n"x,""y""",\r\n',
        'a\tb\r\n\'=1+1\t2\r\n"x,""y"""\t\r\n',
        '| a | b |\n| --- | --- |\n| =1+1 | 2 |\n| x,"y" |  |',
      ]);
      expect(await sentTexts(page)).toEqual(["Copied", "Copied", "Copied"]);
      await menu.click();
      await page.keyboard.press("Escape");
      expect(await page.locator("#shown details").getAttribute("open")).toBeNull();
    }));

  test("W4 W32 if the clipboard refuses, the code is selected and the selection is copied", () =>
    opened("only=code", async (page) => {
      await page.evaluate(() => {
        Object.defineProperty(navigator, "clipboard", { value: undefined });
        document.execCommand = () => false;
      });
      await page.locator("[data-name=code]").getByRole("button", { name: "Copy" }).click();
      await page.waitForSelector("[data-told=failed]");
      expect(await sentTexts(page)).toEqual(["Could not copy"]);
      expect(await page.evaluate(() => String(getSelection()))).toContain("class Answer:");
    }));

  test("W45 a chart has a description of its data, and arrow keys move from point to point", () =>
    opened("only=chart", async (page) => {
      const chart = page.locator("[data-name='chart bar']");
      const plot = chart.locator(".arp-chart-place");
      expect(await plot.getAttribute("aria-label")).toBe(
        "Rain and wind by month. Bar chart. 12 points. Rain (mm): 16 to 161. Wind (dm/s): 26 to 36",
      );
      await plot.focus();
      await page.keyboard.press("ArrowRight");
      await page.keyboard.press("ArrowRight");
      expect(await chart.locator("[role=status]").textContent()).toBe("Feb, Rain (mm): 118");
      await page.keyboard.press("ArrowDown");
      expect(await chart.locator("[role=status]").textContent()).toBe("Feb, Wind (dm/s): 33");
      expect(await chart.locator(".arp-tip").innerText()).toBe("Feb\nRain (mm)\n118\nWind (dm/s)\n33");
      await page.keyboard.press("Escape");
      expect(await chart.locator(".arp-tip").count()).toBe(0);
      await chart.getByRole("button", { name: "Rain (mm)" }).click();
      expect(await chart.locator(".arp-chart-place .arp-series").count()).toBe(1);
      await chart.getByRole("button", { name: "Show data" }).click();
      expect(await chart.locator("tbody tr").nth(1).innerText()).toBe("Feb\t118\t33");
      const dashes = await page
        .locator("[data-name='chart line'] .arp-chart-place .arp-line-path")
        .evaluateAll((lines) => lines.map((line) => line.getAttribute("stroke-dasharray")));
      expect(dashes).toEqual([null, "7 4", "2 3"]);
    }));

  test("W45 the pointer over a point shows its values", () =>
    opened("only=chart", async (page) => {
      const plot = page.locator("[data-name='chart line'] .arp-chart-place");
      await plot.scrollIntoViewIfNeeded();
      const box = (await plot.boundingBox()) as { x: number; y: number; width: number; height: number };
      await page.mouse.move(box.x + box.width - 14, box.y + 60);
      expect(await page.locator("[data-name='chart line'] .arp-tip strong").textContent()).toBe("Dec");
    }));

  test("W45 the pointer, a finger and the keys pick the nearest point in both directions", () =>
    opened("only=confirm", async (page) => {
      const labels = [1, 2, 2.05, 3, 9];
      await show(page, "chart", {
        type: "scatter",
        labels,
        datasets: [
          { label: "A", data: [10, 90, null, 50, 20] },
          { label: "B", data: [null, null, 5, 55, 80] },
        ],
        x_title: "Weight",
        unit: "kg",
      });
      const place = page.locator("#shown .arp-chart-place");
      await place.scrollIntoViewIfNeeded();
      const marks = await page.locator("#shown .arp-chart-place .arp-mark").evaluateAll((marks) =>
        marks.map((mark) => {
          const { left, top, width, height } = mark.getBoundingClientRect();
          return [left + width / 2, top + height / 2] as const;
        }),
      );
      const received = () => page.locator("#shown .arp-tip").innerText();
      const high = marks[1] as [number, number]; // A: 1, 2, 3, 9; B: 2.05, 3, 9
      expect(marks).toHaveLength(7);
      const [x, y] = marks[4] as [number, number]; // B at 2.05: 5, just below A at 2: 90
      expect(Math.abs(x - high[0])).toBeLessThan(6);
      await page.mouse.move(x - 5, y - 8);
      expect(await received()).toBe("Weight: 2.05\nB\n5\u00a0kg");
      await page.mouse.move(high[0] + 4, high[1] + 8);
      expect(await received()).toBe("Weight: 2\nA\n90\u00a0kg");
      const touch = (type: string, x: number, y: number) =>
        place.dispatchEvent(type, { pointerType: "touch", clientX: x, clientY: y, bubbles: true });
      await touch("pointerdown", (marks[6] as [number, number])[0] - 9, (marks[6] as [number, number])[1] + 9);
      await touch("pointerleave", 0, 0);
      expect(await received()).toBe("Weight: 9\nB\n80\u00a0kg");
      await place.focus();
      const keys = async (...names: string[]) => {
        for (const name of names) await page.keyboard.press(name);
        return page.locator("#shown [role=status]").textContent();
      };
      expect(await keys("Home")).toBe("Weight: 1, A: 10\u00a0kg");
      expect(await keys("ArrowRight", "ArrowRight")).toBe("Weight: 2.05, B: 5\u00a0kg");
      expect(await keys("ArrowUp")).toBe("Weight: 1, A: 10\u00a0kg");
      expect(await keys("ArrowUp")).toBe("Weight: 9, A: 20\u00a0kg");
      expect(await keys("End")).toBe("Weight: 9, B: 80\u00a0kg");
    }));

  test("W44 twelve parts with long names: each has its name and value beside or below the pie, nothing overlaps", () =>
    opened("only=chart", async (page) => {
      const chart = page.locator("[data-name='chart pie']");
      const names = (await chart.locator(".arp-legend-item").allInnerTexts()).map((one) => one.split("\n"));
      expect(names).toHaveLength(12);
      expect(names[0]).toEqual(["Enterprise subscriptions (annual, prepaid)", "412,300", "30.2%"]);
      expect(names[11]).toEqual(["Other", "210", "<0.1%"]);
      expect(await chart.locator(".arp-parts-head").innerText()).toBe("Source\nRevenue (USD)");
      for (const width of [1440, 390, 320]) {
        await page.setViewportSize({ width, height: 900 });
        await page.evaluate(waitUntilDrawn);
        const [place, legend] = await chart
          .locator(".arp-chart-place, .arp-parts")
          .evaluateAll((parts) => parts.map((part) => part.getBoundingClientRect().toJSON() as DOMRect));
        if (width === 1440) expect(legend?.left).toBeGreaterThanOrEqual(place?.right ?? Infinity);
        else expect(legend?.top).toBeGreaterThanOrEqual(place?.bottom ?? Infinity);
        const figure = (await chart.locator("figure").boundingBox()) as { x: number; width: number };
        const outside = await chart
          .locator(".arp-parts *, .arp-chart-place svg")
          .evaluateAll(
            (parts, [left, right]) =>
              parts.filter(
                (part) =>
                  part.getBoundingClientRect().left < left - 1 || part.getBoundingClientRect().right > right + 1,
              ).length,
            [figure.x, figure.x + figure.width] as const,
          );
        expect(outside).toBe(0);
        const words = await chart
          .locator(".arp-slice text")
          .evaluateAll((words) => words.map((word) => word.getBoundingClientRect().toJSON() as DOMRect));
        words.forEach((one, at) =>
          words
            .slice(at + 1)
            .forEach((other) =>
              expect(
                one.right < other.left || other.right < one.left || one.bottom < other.top || other.bottom < one.top,
              ).toBe(true),
            ),
        );
      }
      await page.setViewportSize({ width: 1440, height: 900 });
      const fills = await chart
        .locator(".arp-slice")
        .evaluateAll((slices) =>
          slices.map((slice) => [...slice.querySelectorAll("path")].map((path) => getComputedStyle(path).fill).join()),
        );
      expect(new Set(fills).size).toBe(12);
      // The pointer and the keys pick in both directions.
      await chart.locator(".arp-slice").nth(3).hover();
      expect(await chart.locator(".arp-legend-item[data-picked]").innerText()).toContain("Marketplace commissions");
      await chart.locator(".arp-legend-item").nth(11).hover();
      expect(
        await chart
          .locator(".arp-slice[data-picked]")
          .evaluateAll((slices) =>
            slices.map((slice) => [...(slice.parentElement as Element).children].indexOf(slice)),
          ),
      ).toEqual([11]);
      expect((await chart.locator(".arp-tip").innerText()).split("\n")).toEqual(["Other", "<0.1%", "210\u00a0USD"]);
      await chart.locator(".arp-chart-place").focus();
      await page.keyboard.press("Home");
      expect(await chart.locator("[role=status]").textContent()).toBe(
        "Enterprise subscriptions (annual, prepaid): 412,300\u00a0USD (30.2%)",
      );
      await chart.locator(".arp-legend-item").first().click();
      expect((await chart.locator(".arp-legend-item").nth(1).innerText()).split("\n")[2]).toBe("30.3%");
      await chart.getByRole("button", { name: "Show data" }).click();
      await chart.locator("thead").waitFor();
      expect(await chart.locator("thead th").allTextContents()).toEqual(["Source", "Revenue: 2025 (USD)"]);
      expect(await chart.locator("tbody tr").last().innerText()).toBe("Other\t210");
    }));

  test("W44 axes have titles, and the unit is at the ticks, in the description and in the data", () =>
    opened("only=confirm", async (page) => {
      const labels = [
        "North and the islands",
        "Central Europe",
        "Asia-Pacific",
        "South America",
        "Middle East and Africa",
        "Everything else",
      ];
      await show(page, "chart", {
        type: "bar",
        title: "Open orders",
        labels,
        datasets: [{ label: "Open", data: [12.5, 30, 17.5, 8, 4, 1] }],
        x_title: "Region",
        y_title: "Orders",
        unit: "%",
        height: 220,
      });
      const chart = page.locator("#shown");
      expect(await chart.locator(".arp-axis-title").allTextContents()).toEqual(["Orders", "Region"]);
      expect(await chart.locator(".arp-axis text").allTextContents()).toEqual(
        expect.arrayContaining(["0%", "10%", "20%", "30%"]),
      );
      expect(await chart.locator(".arp-chart-place").getAttribute("aria-label")).toBe(
        "Open orders. Bar chart. Orders. Region. 6 points. Open: 1% to 30%",
      );
      await page.setViewportSize({ width: 390, height: 900 });
      await page.evaluate(waitUntilDrawn);
      // All names are turned and inside the drawing, and none overlaps another or the title below.
      const boxes = await chart
        .locator(".arp-axis text[transform]")
        .evaluateAll((names) => names.map((name) => name.getBoundingClientRect().toJSON() as DOMRect));
      const drawing = (await chart.locator(".arp-chart-place > svg").boundingBox()) as {
        x: number;
        y: number;
        height: number;
      };
      const below = (await chart.locator(".arp-axis-title").last().boundingBox()) as { y: number };
      expect(boxes).toHaveLength(6);
      for (const { left, bottom } of boxes) {
        expect(left).toBeGreaterThanOrEqual(drawing.x - 2);
        expect(bottom).toBeLessThanOrEqual(below.y + 4);
      }
      await chart.getByRole("button", { name: "Show data" }).click();
      await chart.locator("thead").waitFor();
      expect(await chart.locator("thead th").allTextContents()).toEqual(["Region", "Orders: Open (%)"]);
      expect(await chart.locator("tbody td").allTextContents()).toEqual(["12.5", "30.0", "17.5", "8.0", "4.0", "1.0"]);
    }));

  test("W46 a chart is drawn again when its size changes, and saved with its colours", () =>
    opened("only=chart", async (page) => {
      const width = () => page.locator("[data-name='chart bar'] .arp-chart-place > svg").getAttribute("width");
      const before = await width();
      await page.setViewportSize({ width: 500, height: 900 });
      await page.evaluate(waitUntilDrawn);
      expect(Number(await width())).toBeLessThan(Number(before) - 200);
      const chart = page.locator("[data-name='chart bar']");
      const save = async (format: string) => {
        await chart.locator("summary").click();
        const [download] = await Promise.all([
          page.waitForEvent("download"),
          chart.getByRole("button", { name: `Download (${format})` }).click(),
        ]);
        await chart.locator("summary").click();
        const chunks: Buffer[] = [];
        for await (const chunk of await download.createReadStream()) chunks.push(chunk as Buffer);
        return [download.suggestedFilename(), Buffer.concat(chunks)] as const;
      };
      const [name, svg] = await save("SVG");
      expect(name).toBe("Rain and wind by month.svg");
      expect(svg.toString()).toContain('fill="rgb(11, 110, 99)"');
      expect(svg.toString()).not.toContain("var(");
      const parts = page.locator("[data-name='chart pie']");
      await parts.locator("summary").click();
      const [saved] = await Promise.all([
        page.waitForEvent("download"),
        parts.getByRole("button", { name: "Download (SVG)" }).click(),
      ]);
      const drawing = (await readFile(await saved.path())).toString();
      const [, texture] = /fill="url\(&quot;#([\w-]+)&quot;\)"/.exec(drawing) ?? [];
      expect(drawing).toMatch(new RegExp(`<pattern [^>]*id="${texture}"`));
      const [, png] = await save("PNG");
      expect(png.subarray(1, 4).toString()).toBe("PNG");
      const [, csv] = await save("CSV");
      expect(csv.toString().split("\r\n").slice(0, 2)).toEqual(["\ufeff,Rain (mm),Wind (dm/s)", "Jan,143,31"]);
    }));

  test("W44 charts of five thousand points, of zeros, of one point and of none are drawn in time", () =>
    opened("only=confirm", async (page) => {
      const wave = Array.from({ length: 5000 }, (_, at) => Math.sin(at / 50) * 100);
      for (const type of ["line", "area", "bar", "scatter", "pie"]) {
        await show(page, "chart", { type, labels: wave.map((_, at) => at), datasets: [{ label: "wave", data: wave }] });
        expect(await page.locator("#shown .arp-failure").count()).toBe(0);
        if (type !== "pie") expect(await page.locator("#shown svg *").count()).toBeLessThan(700);
      }
      for (const data of [[0, 0, 0], [5], [], [null], [-1, -2], [1e12, 3]]) {
        for (const type of ["line", "bar", "pie", "scatter", "area"])
          await show(page, "chart", { type, labels: data.map((_, at) => `p${at}`), datasets: [{ data }] });
        expect(await page.locator("#shown svg").first().innerHTML()).not.toMatch(/NaN|Infinity/);
      }
    }));

  test("W47 a difference has one or two columns, one in a narrow place, and its folds open", () =>
    opened("only=diff", async (page) => {
      const diff = page.locator("[data-name=diff]");
      expect(await diff.locator("ins").first().textContent()).toBe(": Path");
      expect(await diff.locator(".arp-diff-sign").allTextContents()).toContain("+");
      await diff.getByRole("button", { name: "4 unchanged lines" }).click();
      expect(await diff.locator("tr").last().innerText()).toContain("main()");
      await diff.getByRole("button", { name: "Side by side" }).click();
      expect(await diff.locator("tr").nth(1).locator("td").count()).toBe(6);
      await page.setViewportSize({ width: 500, height: 900 });
      await page.waitForFunction(() => document.querySelector("[data-name=diff] .arp-diff-split") === null);
      expect(await diff.getByRole("button", { name: "Side by side" }).count()).toBe(0);
    }));

  test("W47 ten thousand lines are compared without blocking the page", () =>
    opened("only=diff", async (page) => {
      const [turns, changed] = await page.evaluate(async () => {
        const before = Array.from({ length: 10_000 }, (_, at) => `line ${at}`);
        const after = before.map((line, at) => (at % 20 === 0 ? `${line} changed` : line));
        const place = Object.assign(document.createElement("div"), { id: "shown" });
        document.querySelector("main")?.append(place);
        gallery.render(
          gallery.renderComponent(
            { id: "big", type: "diff", props: { before: before.join("\n"), after: after.join("\n") } },
            gallery.context,
          ),
          place,
        );
        const added = () => place.querySelectorAll("tr[data-kind=added]").length;
        let turns = 0;
        for (; added() < 500; turns += 1) await new Promise((resolve) => setTimeout(resolve));
        return [turns, added()];
      });
      expect(changed).toBe(500);
      expect(turns).toBeGreaterThan(4); // timers ran meanwhile
      const last = page.locator("#shown .arp-diff-chunk > table").last();
      await page.evaluate(waitUntilDrawn);
      expect(await last.evaluate((table) => table.checkVisibility({ contentVisibilityAuto: true }))).toBe(false); // it is not laid out
      await last.scrollIntoViewIfNeeded();
      await page.evaluate(waitUntilDrawn);
      expect(await last.evaluate((table) => table.checkVisibility({ contentVisibilityAuto: true }))).toBe(true);
    }));

  test("W48 code wraps, has line numbers and is saved under its name; arrow keys move between tabs", () =>
    opened("only=code", async (page) => {
      const code = page.locator("[data-name=code]");
      await page.waitForSelector(".arp-k-keyword");
      await code.getByRole("button", { name: "Wrap lines" }).click();
      await code.getByRole("button", { name: "Line numbers" }).click();
      expect(await code.locator("pre").evaluate((pre) => getComputedStyle(pre).whiteSpace)).toBe("pre-wrap");
      expect(
        await code
          .locator(".arp-line")
          .nth(2)
          .evaluate((line) => getComputedStyle(line, "::before").content),
      ).toContain("counter");
      const [download] = await Promise.all([
        page.waitForEvent("download"),
        code.getByRole("button", { name: "Download" }).click(),
      ]);
      expect(download.suggestedFilename()).toBe("answer.py");
      const tabs = page.locator("[data-name='code tabs']");
      await tabs.getByRole("tab", { name: "hello.js" }).focus();
      await page.keyboard.press("ArrowRight");
      expect(await tabs.locator("[aria-selected=true]").textContent()).toBe("hello.sql");
      expect(await tabs.locator("pre").innerText()).toContain("SELECT 'Hello'");
    }));

  test("W49 a form has labels, Enter focuses the first wrong field or sends one answer, then it is a summary", () =>
    opened("only=form", async (page) => {
      const form = page.locator("[data-name=form]");
      await form.getByLabel("E-mail").fill("no mail");
      await form.getByLabel("How many").fill("99");
      await form.getByLabel("Your name").press("Enter");
      expect(await page.evaluate(() => (document.activeElement as HTMLInputElement).name)).toBe("name");
      expect(await form.getByRole("alert").innerText()).toBe("4 fields need your attention");
      const described = async (label: string) =>
        form
          .getByLabel(label)
          .evaluate(
            (one) =>
              document.getElementById((one.getAttribute("aria-describedby") ?? "").split(" ")[0] as string)?.innerText,
          );
      expect([await described("Your name"), await described("E-mail"), await described("How many")]).toEqual([
        "Required",
        "Enter an e-mail address.",
        "At most 10.",
      ]);
      await form.getByLabel("Your name").fill("Ada");
      await form.getByLabel("E-mail").fill("ada@example.org");
      await form.getByLabel("How many").fill("3");
      await form.getByLabel("Size").selectOption("Large, with a long name");
      await form.getByLabel("Key").fill("hush");
      await form.getByLabel("I have read the terms").check();
      await form.getByLabel("Your name").press("Enter");
      await page.evaluate(waitUntilDrawn);
      expect(await sentTexts(page)).toEqual([
        "4 fields need your attention",
        {
          id: expect.any(String),
          value: {
            name: "Ada",
            mail: "ada@example.org",
            count: 3,
            day: "2026-12-01",
            size: 2,
            key: "hush",
            terms: true,
          },
        },
        "Answer sent",
      ]);
      expect(await form.locator("input, button").count()).toBe(0);
      expect(await form.innerText()).not.toContain("hush");
    }));

  test("W22 text that is being written in a form stays when the form changes around it", () =>
    opened("only=confirm", async (page) => {
      const fields = [
        { name: "a", label: "A" },
        { name: "b", label: "B", value: "x" },
      ];
      await show(page, "form", { title: "One", fields });
      await page.locator("#shown").getByLabel("A", { exact: true }).fill("half writ");
      await show(page, "form", { title: "Two", fields: [...fields, { name: "c", label: "C" }] });
      expect(await page.locator("#shown").getByLabel("A", { exact: true }).inputValue()).toBe("half writ");
      expect(await page.evaluate(() => (document.activeElement as HTMLInputElement).name)).toBe("a");
    }));

  test("W53 a remote picture waits for consent; a loaded picture opens large and closes with Escape", async () => {
    const { page, foreign } = await host.open("only=image");
    expect(foreign).toEqual([]);
    expect(await page.locator("[data-name='image remote'] .arp-picture-place").innerText()).toContain(
      "Image from pictures.example is blocked.",
    );
    const open = page.locator("[data-name=image]").getByRole("button", { name: "Enlarge: Four squares" });
    await open.click();
    expect(await page.locator("dialog").evaluate((dialog: HTMLDialogElement) => dialog.matches(":modal"))).toBe(true);
    await page.keyboard.press("Escape");
    await page.waitForSelector("dialog", { state: "detached" });
    expect(await open.evaluate((one) => one === document.activeElement)).toBe(true);
    const { width, height } = (await page.locator("[data-name=image] img").first().boundingBox()) as {
      width: number;
      height: number;
    };
    expect([width, height]).toEqual([240, 160]);
    await page
      .locator("[data-name='image remote']")
      .getByRole("button", { name: /Load image/ })
      .click();
    await expect.poll(() => [...new Set(foreign)]).toEqual(["https://pictures.example/map.png"]);
    await page.context().close();
  });

  test("W52 products are real links without a referrer; a search announces its result", () =>
    opened("only=products", async (page) => {
      const link = page.getByRole("link", { name: "Umbrella" });
      expect([
        await link.getAttribute("href"),
        await link.getAttribute("rel"),
        await link.getAttribute("target"),
      ]).toEqual(["https://shop.example/umbrella", "noopener noreferrer nofollow", "_blank"]);
      await show(page, "product-cards", {
        cards: Array.from({ length: 9 }, (_, at) => ({
          name: `Thing ${at}`,
          url: at === 3 ? "javascript:alert(1)" : null,
        })),
      });
      expect(await page.locator("#shown a").count()).toBe(0);
      await page.locator("#shown").getByRole("searchbox").fill("thing 3");
      expect(await page.locator("#shown [role=status]").textContent()).toBe("1 of 9 found");
      expect(await page.locator("#shown li").count()).toBe(1);
    }));

  test("W54 arrow keys move between tabs and tell the agent; keys move a split, which stacks in a narrow place", () =>
    opened("only=tabs", async (page) => {
      await page.getByRole("tab", { name: "Numbers" }).focus();
      await page.keyboard.press("ArrowRight");
      expect(await page.getByRole("tabpanel").last().innerText()).toBe("one, two");
      expect(await sentTexts(page)).toEqual([{ id: expect.any(String), value: 1 }]);
      await show(page, "split", {
        ratio: "1:1",
        left: { id: "l", type: "text", props: { content: "left" } },
        right: { id: "r", type: "text", props: { content: "right" } },
      });
      const divider = page.getByRole("separator");
      await divider.focus();
      await page.keyboard.press("ArrowRight");
      expect(await divider.getAttribute("aria-valuenow")).toBe("55");
      await page.setViewportSize({ width: 400, height: 900 });
      expect(await page.locator("#shown .arp-split").evaluate((one) => getComputedStyle(one).flexDirection)).toBe(
        "column",
      );
    }));

  test(
    "W40 W76 W78 for any props, nothing overflows, nothing is executed, and axe finds no violation",
    { timeout: 180_000 },
    () =>
      opened("only=confirm", async (page) => {
        const found = await page.evaluate(async () => {
          const ATTACKS: unknown[] = [
            "<img src=x onerror=globalThis.hit=1>",
            "javascript:globalThis.hit=1",
            '"><script>globalThis.hit=1</script>',
            "data:text/html,<script>hit=1</script>",
            "${globalThis.hit=1}",
            "{{constructor.constructor('hit=1')()}}",
          ];
          const VALUES: unknown[] = [
            null,
            undefined,
            0,
            -1,
            1e308,
            Number.NaN,
            true,
            "",
            "x",
            "x".repeat(5000),
            [],
            [null],
            [[]],
            [[[]]],
            {},
            { a: { b: {} } },
            [{}],
            [1, "a", null, {}],
            { toString: 1 },
            ...ATTACKS,
          ];
          let seed = 7;
          const random = (most: number) => (seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648) % most;
          const fuzzed = (value: unknown, depth = 0): unknown => {
            if (random(4) === 0) return VALUES[random(VALUES.length)];
            if (Array.isArray(value)) return value.slice(0, 6).map((one) => fuzzed(one, depth + 1));
            if (typeof value === "object" && value !== null)
              return Object.fromEntries(
                Object.entries(value).map(([key, one]) => [
                  key,
                  ["type", "id"].includes(key) && depth > 0 ? one : fuzzed(one, depth + 1),
                ]),
              );
            return random(3) === 0 ? ATTACKS[random(ATTACKS.length)] : value;
          };
          const extra = () =>
            JSON.parse(
              '{"innerHTML":"<img src=x onerror=hit=1>","onclick":"hit=1","style":"position:fixed","ref":1,"key":2,"is":"x","class":"evil","__proto__":{"evil":1}}',
            ) as object;
          const errors: string[] = [];
          addEventListener("error", (event) => errors.push(event.message));
          addEventListener("unhandledrejection", (event) => errors.push(String(event.reason)));
          const types = new Map(gallery.SAMPLES.map(({ component }) => [component.type, component.props] as const));
          const kept = Object.assign(document.createElement("div"), { id: "shown" });
          document.querySelector("main")?.append(kept);
          let cards = 0;
          let drawn = 0;
          const bad = new Set<string>();
          for (const { component } of gallery.SAMPLES.filter(({ name }) => name !== "table long")) {
            const rounds = Math.ceil(
              200 / gallery.SAMPLES.filter((one) => one.component.type === component.type).length,
            );
            for (let round = 0; round < rounds; round += 1) {
              const place = document.createElement("div");
              kept.append(place);
              try {
                gallery.render(
                  gallery.renderComponent(
                    {
                      id: `f${drawn}`,
                      type: component.type,
                      props: { ...(fuzzed(component.props) as object), ...extra() },
                    },
                    gallery.context,
                  ),
                  place,
                );
              } catch (error) {
                errors.push(`${component.type}: ${String(error)}`);
              }
              drawn += 1;
              if (round % 40 === 39) await new Promise((resolve) => setTimeout(resolve, 0));
              if (round >= 3) await Promise.resolve().then(() => new Promise((resolve) => setTimeout(resolve, 0)));
              cards += place.querySelectorAll(":scope > * > .arp-failure").length;
              for (const one of place.querySelectorAll("*")) {
                for (const { name, value } of one.attributes)
                  if (
                    /^on|^srcdoc$/.test(name) ||
                    (/^\s*javascript:/i.test(value) && ["href", "src", "action"].includes(name))
                  )
                    bad.add(`${component.type} ${name}=${value.slice(0, 40)}`);
                if (/^(?:script|iframe|object|embed)$/.test(one.localName))
                  bad.add(`${component.type} ${one.localName}`);
                if (one.classList.contains("evil")) bad.add(`${component.type} class`);
              }
              if (round >= 3) place.remove();
            }
          }
          await new Promise((resolve) => setTimeout(resolve, 500));
          return {
            drawn,
            types: types.size,
            cards,
            errors,
            bad: [...bad],
            hit: (globalThis as { hit?: unknown }).hit,
            evil: ({} as { evil?: unknown }).evil,
          };
        });
        expect(found).toMatchObject({ types: 20, errors: [], bad: [], hit: undefined, evil: undefined });
        expect(found.drawn).toBeGreaterThan(3_600);
        expect((await axe(page)).filter((one) => !/^(?:landmark|page-has|heading-order)/.test(one))).toEqual([]);
      }),
  );
});
