/** Files of an agent on a server with a token. Links and pictures cannot send the token, so a cookie gives access. */

import { readFile } from "node:fs/promises";

import type { Download } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import { APP, ArpServer, ask, log, online } from "../src/host.js";
import { begin, faults, page, usePages } from "../src/stage.js";

const TOKEN = "known-to-the-test";

let guarded: ArpServer;

beforeAll(async () => void (guarded = await ArpServer.start(APP, "--token", TOKEN)));
afterAll(() => guarded.stop());
usePages();

const picture = () => log(page).locator("arp-picture img");
const width = () => picture().evaluate((image) => (image as HTMLImageElement).naturalWidth);
/** Return the number of requests for an address. */
const requested = (pattern: RegExp) => faults.asked.filter((address) => pattern.test(address)).length;

/** Wait for a download of the page or of a page that it opens. */
function downloaded(): Promise<Download> {
  return new Promise((resolve) => {
    page.once("download", resolve);
    page.context().once("page", (other) => other.once("download", resolve));
  });
}

/** Open a chat with two files saved by the agent. */
async function kept(): Promise<void> {
  await begin({ url: `${guarded.url}#token=${TOKEN}` });
  await ask(page, "keep");
  await expect.poll(width).toBe(2);
}

test("W29 W53 a picture saved by the agent is shown, and its link opens the file, without a token in any address", async () => {
  await kept();
  expect(
    await page
      .context()
      .request.get((await picture().getAttribute("src")) as string, { headers: { cookie: "" } })
      .then((answer) => answer.status()),
  ).toBe(401);
  const link = log(page).getByRole("link", { name: "report" });
  const [file] = await Promise.all([downloaded(), link.click()]);
  expect(await readFile(await file.path(), "utf8")).toBe("Nothing to report.");
  expect(file.suggestedFilename()).toBe("report.txt");
  expect(faults.asked.filter((address) => address.includes(TOKEN) && !address.includes("#"))).toEqual([]);
});

test("W53 when the cookie has expired, one new cookie is requested, and the picture is shown", async () => {
  await kept();
  const cookies = requested(/blobs\/cookie$/);
  await page.context().clearCookies();
  await picture().evaluate((image) => ((image as HTMLImageElement).src += "?again"));
  await expect.poll(width).toBe(2);
  expect(requested(/blobs\/cookie$/)).toBe(cookies + 1);
  faults.lines.splice(0); // the browser logs that the first attempt was refused
});

test("W53 a picture without a file shows its description, and is not requested again and again", async () => {
  await kept();
  const before = requested(/\.png/);
  await page.route(/\.png/, (route) => route.fulfill({ status: 404 }));
  await page.reload();
  await online(page);
  await expect.poll(() => requested(/\.png/)).toBe(before + 2); // once more with a new cookie, then no more
  await log(page).locator(".arp-picture-place").getByText("A square", { exact: true }).waitFor();
  await ask(page, "hello");
  expect(requested(/\.png/)).toBe(before + 2);
  faults.lines.splice(0);
});
