/** Several agents: the choice of one, the app's own title, and addresses that name an agent. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";

import { faultsOfAxe } from "../src/axe.js";
import { APP, ArpServer, ask, box, online, say } from "../src/host.js";
import { begin, page, useServer, faults, server } from "../src/stage.js";

useServer();

let office: ArpServer;

beforeAll(async () => {
  office = await ArpServer.start(`${APP}:office`);
});
afterAll(() => office.stop());
afterEach(async () => {
  await page.context().close();
  expect(faults.lines).toEqual([]);
});

const enter = (query = "", options = {}) => begin({ url: `${office.url}/${query}`, ...options });
const radio = (name: string) => page.getByRole("radio", { name });
const picker = () => page.getByRole("group", { name: "Choose an agent" });
const shownAgent = () => page.locator(".page-agents > button");
const address = () => Object.fromEntries(new URL(page.url()).searchParams);
const answer = (text: string) => page.locator("arp-chat .arp-log arp-prose", { hasText: text });
const suggestions = () => page.locator(".arp-suggestion").allInnerTexts();

describe("the choice of an agent", () => {
  test("the welcome offers all agents with their descriptions; the first is selected; title and window have the app's name", async () => {
    await enter();
    await picker().waitFor();
    expect(await picker().getByRole("radio").count()).toBe(3);
    expect(await radio("Ships").isChecked()).toBe(true);
    await picker().getByText("Knows every ship by name.").waitFor();
    await picker().getByText("Tells when the water is high.").waitFor();
    expect(await page.title()).toBe("Harbour office");
    expect(await page.locator(".page-brand").innerText()).toBe("Harbour office");
    expect(await page.locator(".page-head h1").textContent()).toBe("Harbour office");
    expect(await page.locator(".arp-welcome h2").innerText()).toBe("Ships");
    expect(await shownAgent().getAttribute("aria-label")).toBe("Agent: Ships");
  });

  test("selecting an agent in the welcome begins a chat with it, without a new connection; typed text stays", async () => {
    let sockets = 0;
    await enter();
    page.on("websocket", () => (sockets += 1));
    await box(page).fill("when is it high?");
    await radio("Tides").check();
    await expect.poll(suggestions).toEqual(["high water", "low water"]);
    expect(await page.locator(".arp-welcome h2").innerText()).toBe("Tides");
    expect(await radio("Tides").evaluate((radio) => radio === document.activeElement)).toBe(true);
    expect(await box(page).inputValue()).toBe("when is it high?");
    await expect.poll(address).toMatchObject({ workflow: "tides", session: expect.any(String) });
    await box(page).press("Enter");
    await answer("Tides heard: when is it high?").waitFor();
    expect(await shownAgent().getAttribute("aria-label")).toBe("Agent: Tides");
    await page
      .locator(".arp-session", { hasText: "when is it high?" })
      .locator(".arp-session-agent", { hasText: "Tides" })
      .waitFor();
    expect(sockets).toBe(0);
  });

  test("an agent can be selected with arrow keys, also quickly past another one", async () => {
    await enter();
    await radio("Ships").focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await expect.poll(() => page.locator(".arp-welcome h2").innerText()).toBe("مكتب الرسو");
    await ask(page, "hello");
    await answer("Berths heard: hello").waitFor();
  });

  test("the menu beside the title begins a chat with another agent and leaves the open one unchanged", async () => {
    await enter();
    await ask(page, "hello ships");
    await shownAgent().click();
    await page.getByRole("menuitemradio", { name: "Ships", checked: true }).waitFor();
    await page.getByRole("menuitemradio", { name: "Tides" }).click();
    await page.locator(".arp-welcome h2", { hasText: "Tides" }).waitFor();
    expect(await box(page).evaluate((box) => box === document.activeElement)).toBe(true);
    await ask(page, "hello tides");
    await answer("Tides heard: hello tides").waitFor();
    await page.locator(".arp-session a", { hasText: "hello ships" }).click();
    await answer("You said: hello ships").waitFor();
    expect(await shownAgent().getAttribute("aria-label")).toBe("Agent: Ships");
    await page.goBack();
    await answer("Tides heard: hello tides").waitFor();
    expect(await shownAgent().getAttribute("aria-label")).toBe("Agent: Tides");
  });

  test("a new chat has the agent of the chat before", async () => {
    await enter("?workflow=tides");
    await ask(page, "one");
    await page.locator(".page-side .page-new").click();
    await page.locator(".arp-welcome h2", { hasText: "Tides" }).waitFor();
    await ask(page, "two");
    await answer("Tides heard: two").waitFor();
  });

  test("the choice works from right to left and on a phone, and axe finds no faults", async () => {
    for (const options of [
      {},
      { viewport: { width: 390, height: 844 }, hasTouch: true },
      { viewport: { width: 320, height: 640 }, locale: "ar" },
    ]) {
      await enter("", options);
      await page.locator(".arp-agents").waitFor();
      await page.waitForTimeout(400); // until the animation has ended
      expect(await faultsOfAxe(page)).toEqual([]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBe(0);
      const { width } = page.viewportSize() ?? { width: 0 };
      expect(await shownAgent().evaluate((button) => button.getBoundingClientRect().right)).toBeLessThanOrEqual(width);
      await page.locator(".arp-agent").nth(1).click();
      await expect.poll(suggestions).toEqual(["high water", "low water"]);
      if (options !== undefined && width !== 320) await page.context().close();
      else break;
    }
  });
});

describe("addresses", () => {
  test("?workflow= opens a chat with that agent, also after a reload, and over server-sent events", async () => {
    await enter("?workflow=tides");
    await page.locator(".arp-welcome h2", { hasText: "Tides" }).waitFor();
    expect(await radio("Tides").isChecked()).toBe(true);
    await page.reload();
    await online(page);
    await ask(page, "again");
    await answer("Tides heard: again").waitFor();
    const { session } = address();
    await page.context().addInitScript(() => Object.assign(globalThis, { WebSocket: undefined }));
    await page.goto(`${office.url}/?workflow=tides`);
    await online(page);
    await page.reload();
    await online(page);
    await ask(page, "by events");
    await answer("Tides heard: by events").waitFor();
    expect(address().session).not.toBe(session);
  });

  test("a chat keeps its own agent, whatever the address says", async () => {
    await enter("?workflow=tides");
    await ask(page, "mine");
    const { session } = address();
    for (const workflow of ["ships", "nobody"]) {
      await page.goto(`${office.url}/?session=${session}&workflow=${workflow}`);
      await online(page);
      await answer("Tides heard: mine").waitFor();
      expect(await shownAgent().getAttribute("aria-label")).toBe("Agent: Tides");
    }
  });

  test.each([["WebSocket"], ["SSE"]])(
    "an unknown agent is reported over %s, and another one can be selected",
    async (name) => {
      await enter();
      if (name === "SSE") await page.context().addInitScript(() => Object.assign(globalThis, { WebSocket: undefined }));
      await page.goto(`${office.url}/?workflow=nobody`);
      await page
        .locator(".arp-banner", { hasText: "There is no agent of that name here. Choose another one." })
        .waitFor();
      await picker().waitFor();
      expect(await picker().getByRole("radio", { checked: true }).count()).toBe(0);
      expect(await page.title()).toBe("Harbour office");
      expect(await shownAgent().innerText()).toBe("Choose an agent");
      expect(await page.locator(".arp-notice").count()).toBe(0); // it is reported once
      await radio("Tides").check();
      await online(page);
      expect(await page.locator(".arp-banner").count()).toBe(0);
      await ask(page, "hello");
      await answer("Tides heard: hello").waitFor();
      faults.lines.splice(0, faults.lines.length, ...faults.lines.filter((line) => !/status of 40\d/.test(line)));
    },
  );
});

test("an app with one agent shows its title and no choice", async () => {
  await begin();
  await page.locator(".arp-welcome h2", { hasText: "Harbour" }).waitFor();
  expect(await page.locator(".arp-agents, .page-agents, .arp-session-agent").count()).toBe(0);
  expect(await page.title()).toBe("Harbour");
  await say(page, "hello");
  await page.locator(".arp-session").first().waitFor();
  expect(await page.locator(".arp-session-agent").count()).toBe(0);
  expect(address().workflow).toBeUndefined();
  expect(server.url).not.toBe(office.url);
});
