/** Checks for every kind of application. */

import type { Page } from "playwright-core";
import { expect } from "vitest";
import { VERSIONS } from "../../core/src/protocol/generated/tables.js";

const TYPES = Object.keys(VERSIONS);

/** Check that every type of the catalog is in the chat as its element, with content. */
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
  // Large elements are loaded when the first component of their type is drawn.
  await expect.poll(drawn).toEqual(TYPES);
  expect(await page.locator("arp-chat :is(.arp-failure, arp-unknown)").count()).toBe(0);
}

/** Check that the names of an agent's props had no effect in the chat. */
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
