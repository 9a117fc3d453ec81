/** Formatting of numbers and short tables. */

import { expect, test } from "vitest";

import { ask } from "../src/host.js";
import { begin, page, usePages } from "../src/stage.js";

usePages();

const show = (...components: readonly object[]) => ask(page, `show ${JSON.stringify(components)}`);
const shots = process.env.ARP_SHOTS ?? "/tmp";

test("numbers of a column have the same decimals, without rounding errors; copied they have all digits", async () => {
  await begin();
  const rows = [
    ["a", 12.330000000000002, 1 / 3, 7, "5"],
    ["b", 4, 12.5, 12, "x"],
    ["c", 0.1 + 0.2, 0, 9, "7.25"],
  ];
  await show({ type: "table", props: { title: "Sums", headers: ["Name", "Sum", "Mean", "Count", "Given"], rows } });
  const cells = () =>
    page
      .locator("arp-table tbody tr")
      .evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));
  await expect.poll(cells).toEqual([
    ["a", "12.33", "0.3333", "7", "5"],
    ["b", "4.00", "12.5000", "12", "x"],
    ["c", "0.30", "0.0000", "9", "7.25"],
  ]);
  expect(
    await page.locator("arp-table td[title]").evaluateAll((all) => all.map((cell) => cell.getAttribute("title"))),
  ).toEqual(["0.333333333333333"]);
  await page.screenshot({ path: `${shots}/figures.png` });
  await page.locator("arp-table summary").click();
  await page.getByRole("button", { name: "Copy as CSV" }).click();
  await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toContain("0.3333333333333333");
});

test("facts show numbers without rounding errors", async () => {
  await begin();
  await show({ type: "key-value", props: { items: [{ key: "Sum", value: 12.330000000000002 }] } });
  expect(await page.locator("arp-key-value dd .arp-plain").innerText()).toBe("12.33");
});

test.each([
  [8, false],
  [13, true],
])("a table of %i rows has a scroll bar of its own: %s", async (count, scrolls) => {
  await begin({ viewport: { width: 1000, height: 420 } });
  await show({
    type: "table",
    props: { headers: ["Name", "Number"], rows: Array.from({ length: count }, (_, at) => [`row ${at}`, at]) },
  });
  const box = page.locator(".arp-table-scroll");
  await expect.poll(() => box.evaluate(({ scrollHeight, clientHeight }) => scrollHeight > clientHeight)).toBe(scrolls);
  await page.screenshot({ path: `${shots}/rows${count}.png` });
});
