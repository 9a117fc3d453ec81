/** What must hold in every kind of application alike. */

import type { Page } from "playwright-core";
import { expect } from "vitest";
import { VERSIONS } from "../../core/src/protocol/generated/tables.js";

const TYPES = Object.keys(VERSIONS);

/** Every type of the catalog stands in the chat as its element, with something in it. */
export async function drawsEveryType(page: Page): Promise<void> {
  const drawn = () =>
    page.locator("arp-chat .arp-log").evaluate(
      (root, types) =>
        types.filter((type) => {
          const element = root.querySelector(`arp-${type}`);
          return element !== null && element.childElementCount > 0 && element.getBoundingClientRect().height > 0;
        }),
      TYPES,
    );
  // The large ones are loaded with the first of their type.
  await expect.poll(drawn).toEqual(TYPES);
  expect(await page.locator("arp-chat :is(.arp-failure, arp-unknown)").count()).toBe(0);
}

/** Nothing in the chat has what an agent's props would have made by their names. */
export async function namesDoNothing(page: Page): Promise<void> {
  await page
    .locator("arp-chat .arp-log button:visible")
    .evaluateAll((all) => all.forEach((one) => one.dispatchEvent(new MouseEvent("click"))));
  const found = await page
    .locator("arp-chat .arp-log")
    .evaluate((root) =>
      [...root.querySelectorAll("*")].flatMap((one) => [
        ...one.getAttributeNames().filter((name) => /^on|^srcdoc$|^\W/.test(name) || name === "slot" || name === "is"),
        ...(/\bevil\b/.test(`${one.className} ${one.id}`) ? [`${one.localName} is called evil`] : []),
        ...(/^(?:script|iframe|object|embed)$/.test(one.localName) ? [one.localName] : []),
        ...(one.localName === "img" && one.getAttribute("src") === "x" ? ["markup"] : []),
        ...(getComputedStyle(one).position === "fixed" ? [`${one.localName} is fixed`] : []),
      ]),
    );
  expect(found).toEqual([]);
  expect(await page.evaluate(() => [document.title === "broken", ({} as { evil?: string }).evil])).toEqual([
    false,
    undefined,
  ]);
}
