/** Sent messages and pictures, and pictures that cannot be loaded. */

import { expect, test } from "vitest";

import { ask, box, log, online, say } from "../src/host.js";
import { begin, faults, page, usePages } from "../src/stage.js";

usePages();

const PIXEL = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAEElEQVR4nGP4z8AARAwQCgAf7gP9i18U1AAAAABJRU5ErkJggg==",
  "base64",
);
const shots = process.env.ARP_SHOTS ?? "/tmp";

test("a sent picture is shown as a picture, during the upload and after a reload; another file is named", async () => {
  await begin();
  let release = () => {};
  const held = new Promise<void>((resolve) => (release = resolve));
  await page.route("**/_arp/v1/input*", async (route) => {
    await held;
    await route.continue();
  });
  await page.locator("arp-composer input[type=file]").setInputFiles([
    { name: "a map.png", mimeType: "image/png", buffer: PIXEL },
    { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("hello") },
  ]);
  await say(page, "see");
  const sending = page.locator(".arp-outgoing arp-local-picture img");
  await expect.poll(() => sending.evaluate((image) => (image as HTMLImageElement).naturalWidth)).toBe(2);
  release();
  const sent = page.locator("arp-message .arp-said arp-picture img");
  await sent.waitFor();
  await log(page).getByText("a map.png: 73 bytes").waitFor();
  await expect.poll(() => sent.evaluate((image) => (image as HTMLImageElement).naturalWidth)).toBe(2);
  expect(await sent.getAttribute("alt")).toBe("a map.png");
  expect(await page.locator("arp-message .arp-said .arp-file").allInnerTexts()).toEqual([
    expect.stringContaining("notes.txt"),
  ]);
  await page.screenshot({ path: `${shots}/sent_picture.png` });
  await page.reload();
  await online(page);
  await expect.poll(() => sent.evaluate((image) => (image as HTMLImageElement).naturalWidth)).toBe(2);
});

test("a picture that fails shows its description, and can be loaded again", async () => {
  await begin();
  let isThere = false;
  await page.route("**/_api/blobs/**/*.png", (route) => (isThere ? route.continue() : route.fulfill({ status: 404 })));
  await ask(page, "keep");
  const failed = log(page).locator(".arp-picture-failed");
  await failed.waitFor();
  expect(
    (await failed.innerText())
      .split("\n")
      .map((line) => line.trim())
      .filter(Boolean),
  ).toEqual(["The image could not be loaded.", "A square", "Try again", ": A square"]);
  await page.screenshot({ path: `${shots}/failed_picture.png` });
  isThere = true;
  await failed.getByRole("button", { name: /^Try again/ }).click();
  const picture = log(page).locator("arp-image img");
  await expect.poll(() => picture.evaluate((image) => (image as HTMLImageElement).naturalWidth)).toBe(2);
  faults.lines.splice(0); // the browser logs the failed request
});

test("a paste of 5,000 lines folds, opens, and is folded again after a reload", async () => {
  await begin();
  const text = Array.from({ length: 5000 }, (_, at) => `line ${at}`).join("\n");
  await box(page).focus();
  await page.evaluate((copied) => navigator.clipboard.writeText(copied), text);
  await page.keyboard.press("Control+V");
  await expect.poll(() => box(page).inputValue()).toContain("line 4999");
  expect(await box(page).evaluate((area) => area.getBoundingClientRect().height)).toBeLessThan(400);
  await box(page).press("Enter");
  const bubble = page.locator("arp-message .arp-bubble");
  const height = () => bubble.evaluate((element) => element.getBoundingClientRect().height);
  const all = bubble.getByRole("button", { name: "Show all (5,000 lines)" });
  await all.waitFor();
  expect(await height()).toBeLessThan(400);
  expect(await bubble.evaluate((element) => element.textContent?.includes("line 4999"))).toBe(true);
  await page.screenshot({ path: `${shots}/folded.png` });
  await all.click();
  expect(await height()).toBeGreaterThan(50_000);
  await bubble.getByRole("button", { name: "Show less" }).click();
  expect(await height()).toBeLessThan(400);
  await page.reload();
  await all.waitFor();
  expect(await height()).toBeLessThan(400);
});
