/** Harmful output of an agent: pictures from other hosts (W53, W79), huge and hostile texts (W81). */

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { crc32, deflateSync } from "node:zlib";

import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";

import { slowness } from "../../elements/tests/browser/page.js";
import { ask, box, log } from "../src/host.js";
import { begin, faults, page, useServer } from "../src/stage.js";

useServer();
afterEach(() => page.context().close());

/** Return a picture of one colour. */
function png(width: number, height: number): Buffer {
  const chunk = (name: string, data: Buffer) => {
    const body = Buffer.concat([Buffer.from(name, "latin1"), data]);
    const [size, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
    size.writeUInt32BE(data.length);
    sum.writeUInt32BE(crc32(body));
    return Buffer.concat([size, body, sum]);
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 2], 8);
  const row = Buffer.concat([Buffer.from([0]), Buffer.alloc(width * 3, 0x80)]);
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    chunk("IHDR", head),
    chunk("IDAT", deflateSync(Buffer.concat(Array<Buffer>(height).fill(row)))),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

describe("pictures from other hosts", () => {
  let pictures: Server;
  let place: string;
  let requested: { path: string; referer: string | undefined; cookie: string | undefined }[];

  beforeAll(async () => {
    pictures = createServer(({ url: path = "", headers: { referer, cookie } }, response) => {
      requested.push({ path, referer, cookie });
      if (path === "/away.png")
        response.writeHead(302, { location: `http://127.0.0.1:${new URL(place).port}/tracker.png` }).end();
      else if (path === "/page.html")
        response.writeHead(200, { "content-type": "text/html" }).end("<script>parent.document.title='broken'</script>");
      else if (path.endsWith(".png")) response.writeHead(200, { "content-type": "image/png" }).end(png(240, 160));
      else response.writeHead(404).end();
    });
    await new Promise<void>((resolve) => pictures.listen(0, "127.0.0.1", resolve));
    place = `http://other.test:${(pictures.address() as AddressInfo).port}`;
  });
  afterAll(() => new Promise((resolve) => pictures.close(resolve)));

  const show = (...components: object[]) => ask(page, `show ${JSON.stringify(components)}`);
  const image = (path: string, more: object = {}) => ({
    type: "image",
    props: { src: place + path, alt: "A map", ...more },
  });
  const allow = () =>
    page
      .getByRole("button", { name: /^Load image/ })
      .first()
      .click();
  /** Return the faults, without the request for the picture, which the user has allowed. */
  const complaints = () =>
    faults.lines.filter((line) => line !== `asked for ${place}/map.png` && line !== `asked for ${place}/other.png`);

  test("W53 W79 nothing is fetched before the user allows it; then the picture is shown, under the page's policy", async () => {
    requested = [];
    await begin();
    await show(image("/map.png"), image("/other.png"));
    expect(
      await log(page)
        .getByText(`Image from ${new URL(place).host} is blocked.`)
        .count(),
    ).toBe(2);
    expect(requested).toEqual([]);
    await allow();
    const frames = page.locator("arp-picture iframe");
    await expect.poll(() => frames.count()).toBe(2); // the user has allowed the host
    await expect.poll(() => requested.map(({ path }) => path).sort()).toEqual(["/map.png", "/other.png"]);
    await expect.poll(async () => (await frames.first().boundingBox())?.width).toBe(240);
    expect((await frames.first().boundingBox())?.height).toBe(160);
    const shown = await page
      .frames()
      .find((frame) => frame.url().includes("map.png"))
      ?.evaluate(() => document.querySelector("img")?.naturalWidth);
    expect(shown).toBe(240);
    // The request to the picture's host has no referrer and no cookies.
    expect(requested.map(({ referer, cookie }) => [referer, cookie])).toEqual([
      [undefined, undefined],
      [undefined, undefined],
    ]);
    expect(await page.getByRole("img", { name: "A map" }).count()).toBe(2);
    expect(complaints()).toEqual([]);
  });

  test("W53 a picture with a known size does not move the text when it loads, and it opens large", async () => {
    await begin();
    await show(image("/map.png", { width: 120, height: 80 }));
    await allow();
    const frame = page.locator("arp-picture iframe").first();
    await expect.poll(async () => (await frame.boundingBox())?.height).toBe(80);
    const enlarge = page.getByRole("button", { name: "Enlarge: A map" });
    await enlarge.click();
    await expect.poll(async () => (await page.locator("dialog iframe").boundingBox())?.width).toBe(240);
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
    expect(await enlarge.evaluate((one) => one === document.activeElement)).toBe(true);
    expect(complaints()).toEqual([]);
  });

  test("W53 W79 a picture that redirects, is invalid or is missing says so in its place, and no other host is asked", async () => {
    requested = [];
    await begin();
    await show(image("/away.png"), image("/page.html"), image("/gone.png?"));
    await allow();
    await page.locator("arp-picture .arp-picture-failed").nth(2).waitFor();
    expect(await page.locator("arp-picture iframe").count()).toBe(0);
    expect([...new Set(requested.map(({ path }) => path))].sort()).toEqual(["/away.png", "/gone.png?", "/page.html"]);
    expect(await page.title()).toBe("Harbour");
  });

  test("W79 without the frame the policy still blocks every picture", async () => {
    requested = [];
    await begin();
    await page.evaluate((src) => {
      const image = Object.assign(new Image(), { src });
      document.body.append(image);
      return new Promise((resolve) => (image.onerror = resolve));
    }, `${place}/map.png`);
    expect(requested).toEqual([]);
    expect(faults.lines.some((line) => line.includes("img-src"))).toBe(true);
  });
});

describe("huge and hostile texts", () => {
  /** Return the longest time for which the page was blocked during an action, in ms. */
  async function longest(happens: () => Promise<unknown>): Promise<number> {
    await page.evaluate(() => {
      const seen = { longest: 0, last: performance.now() };
      Object.assign(globalThis, { seen });
      setInterval(() => {
        seen.longest = Math.max(seen.longest, performance.now() - seen.last);
        seen.last = performance.now();
      }, 5);
    });
    await happens();
    return page.evaluate(() => (globalThis as unknown as { seen: { longest: number } }).seen.longest);
  }

  /** Wait until the text is drawn; of the longest one, which takes long, a large part is enough. */
  const drawn = () =>
    page.waitForFunction(
      () =>
        document.querySelectorAll("arp-prose p").length > 3000 ||
        [...document.querySelectorAll("arp-prose")].every((prose) => !(prose as unknown as { busy: boolean }).busy),
      null,
      { timeout: 60_000 },
    );

  test.each([
    ["5 MB of prose", "prose"],
    ["a line of a million characters", "line"],
    ["10,000 nested lists", "lists"],
    ["10,000 nested quotes", "quotes"],
    ["stars and underscores without end", "stars"],
    ["brackets without end", "brackets"],
    ["backticks of growing length", "ticks"],
    ["pipes and dashes", "pipes"],
  ])(
    "W81 the page responds within a second while it is given %s, and after a reload",
    { timeout: 240_000 },
    async (_name, kind) => {
      await begin();
      const slow = await slowness(page);
      const live = await longest(async () => {
        await ask(page, `huge ${kind}`);
        await drawn();
      });
      await page.reload();
      const again = await longest(async () => {
        await page.locator("arp-message[data-status=completed]").waitFor({ timeout: 30_000 });
        await drawn();
        await box(page).fill("hello");
      });
      console.log(
        `W81 ${kind}: ${live.toFixed(0)} ms live, ${again.toFixed(0)} ms after a reload, slow ${slow.toFixed(1)}`,
      );
      expect(Math.max(live, again)).toBeLessThanOrEqual(1000 * slow);
      await page.locator(".arp-send").click();
      await log(page).getByText("You said: hello").waitFor({ timeout: 30_000 });
      expect(faults.lines).toEqual([]);
    },
  );
});
