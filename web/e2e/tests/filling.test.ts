/** An open question: the text of the message box, and nothing that covers the form. */

import { expect, test } from "vitest";

import { ask, box, log, say } from "../src/host.js";
import { begin, page, usePages } from "../src/stage.js";

usePages();

const placeholder = () => box(page).getAttribute("placeholder");

test.each([
  ["form", () => page.getByRole("button", { name: "Go on" })],
  ["confirm", () => page.getByRole("button", { name: "Do it" })],
  ["permission", () => page.getByRole("button", { name: /^Allow once/ })],
])("while a %s is open, the message box says that an answer is wanted above", async (name, button) => {
  await begin();
  expect(await placeholder()).toBe("Write a message");
  await say(page, name);
  await button().waitFor();
  await expect.poll(placeholder).toBe("Answer above, or write a message");
  await page.reload();
  await button().waitFor();
  await expect.poll(placeholder).toBe("Answer above, or write a message");
  if (name === "form") await page.getByLabel("Name").fill("Ada");
  await button().click();
  await log(page)
    .getByText(/Hello Ada|It is done|It was changed/)
    .waitFor();
  await expect.poll(placeholder).toBe("Write a message");
});

test("nothing covers a form that is being filled in; the button to the newest text returns afterwards", async () => {
  await begin({ viewport: { width: 1000, height: 500 } });
  await ask(page, "count 40");
  await say(page, "long form");
  const fields = page.locator("arp-form input");
  await expect.poll(() => fields.count()).toBe(20);
  const pill = page.locator(".arp-jump");
  await fields.first().scrollIntoViewIfNeeded();
  await page.locator(".arp-scroller").evaluate((scroller) => (scroller.scrollTop -= 60));
  await pill.waitFor();
  expect(await pill.innerText()).toBe("The agent is waiting for your answer");
  await fields.nth(2).focus();
  await pill.waitFor({ state: "detached" });
  await page.keyboard.type("three");
  await page.keyboard.press("Tab");
  expect(await pill.count()).toBe(0);
  await box(page).focus();
  await pill.waitFor();
  await pill.click();
  await page.getByRole("button", { name: "Go on" }).waitFor();
});
