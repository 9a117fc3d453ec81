/** A server with a token: the page has a field to enter it. */

import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import { APP, ArpServer, ask, log, online, watched } from "../src/host.js";
import { browser, page, useServer } from "../src/stage.js";

const TOKEN = "known/to+the%test";

let guarded: ArpServer;
let here: typeof page;

useServer();
beforeAll(async () => void (guarded = await ArpServer.start(APP, "--token", TOKEN)));
afterAll(() => guarded.stop());
beforeEach(async () => {
  const context = await browser.newContext({ viewport: { width: 1100, height: 800 }, reducedMotion: "reduce" });
  context.setDefaultTimeout(8000);
  here = await context.newPage();
  watched(here, guarded.url);
  return () => context.close();
});

const field = () => here.getByLabel("Token", { exact: true });

test("a page without a token says what is missing, and its field has the cursor", async () => {
  await here.goto(guarded.url);
  await field().waitFor();
  const banner = here.locator("arp-banner");
  expect(await banner.innerText()).toContain(
    "This server asks for a token. It is at the end of the address that the server printed when it started.",
  );
  expect(await here.locator(".arp-notice").count()).toBe(0); // the message appears once
  expect(await banner.getByRole("button").allInnerTexts()).toEqual(["Connect"]);
  await expect.poll(() => field().evaluate((input) => input === document.activeElement)).toBe(true);
  expect(await field().getAttribute("type")).toBe("password");
  await here.screenshot({ path: `${process.env.ARP_SHOTS ?? "/tmp"}/token.png` });
});

test("a wrong token is refused with a message; the right one opens the chat, also after a reload", async () => {
  await here.goto(guarded.url);
  await field().fill("something else");
  await field().press("Enter");
  await here.getByRole("alert").getByText("The server does not accept this token.").waitFor();
  await field().fill(` ${TOKEN} `);
  await here.getByRole("button", { name: "Connect" }).click();
  await online(here);
  await ask(here, "hello");
  await log(here).getByText("You said: hello").waitFor();
  await here.locator("arp-sessions nav").getByText("hello").waitFor();
  expect(await here.locator(".arp-notice, arp-sessions [role=alert]").count()).toBe(0);
  await here.reload();
  await online(here);
  await log(here).getByText("You said: hello").waitFor();
  expect(await field().count()).toBe(0);
});

test("the whole address may be pasted; the inspector in the same tab is signed in too", async () => {
  await here.goto(guarded.url);
  await field().fill(`${guarded.url}/#${new URLSearchParams({ token: TOKEN })}`);
  await field().press("Enter");
  await online(here);
  await here.goto(`${guarded.url}/_inspect`);
  await here.getByText("Connected", { exact: true }).waitFor();
});
