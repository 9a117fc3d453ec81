/** Answers and their surroundings: sources, times, steps, failed components, keys (webui.md W24, W36–W39, W89). */

import { describe, expect, test } from "vitest";

import { ask, box, converse, log, online, say } from "../src/host.js";
import { begin, page, usePages } from "../src/stage.js";

/** `<arp-chat>`, as far as it is used here. */
interface Chat extends HTMLElement {
  keys: object;
  components: object;
  showActivity: boolean;
  avatar: string;
}

/** The same limit as for all other waiting. */
const LONG = { timeout: 8000 };

usePages();

/** Change a property of the chat. */
function set<Name extends "keys" | "showActivity" | "avatar">(name: Name, value: Chat[Name]): Promise<void> {
  return page
    .locator("arp-chat")
    .evaluate((chat, given) => Object.assign(chat, given), { [name]: value }) as Promise<never>;
}

describe("sources", () => {
  const mark = (number: number) => page.locator("arp-cite a", { hasText: `[${number}]` });
  const card = () => page.getByRole("tooltip");

  test("W37 marks in the text are links to the list; hover and focus show a card, Escape closes it alone", async () => {
    await begin();
    await ask(page, "sources");
    await mark(1).waitFor();
    expect(await log(page).locator("arp-cite a").allInnerTexts()).toEqual(["[1]", "[2]", "[3]"]);
    expect(await log(page).locator(".arp-reply p").first().innerText()).toContain("Nothing says [7], nor see [2]");
    expect(await mark(1).getAttribute("aria-label")).toBe("Source 1: Rain in Seattle");

    await mark(1).hover();
    await card().waitFor();
    expect((await card().innerText()).split(/\s*\n\s*/)).toEqual([
      "Rain in Seattle",
      "example.org",
      "It rains on 160 days.",
    ]);
    await card().hover(); // the pointer can move onto the card
    expect(await card().isVisible()).toBe(true);
    await page.mouse.move(5, 5);
    await card().waitFor({ state: "detached" });

    await mark(2).focus();
    await card().getByText("Bergen").waitFor();
    expect(await mark(2).getAttribute("aria-describedby")).toBe(await card().getAttribute("id"));
    await page.keyboard.press("Escape");
    await card().waitFor({ state: "detached" });
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("[2]");

    await page.keyboard.press("Enter");
    expect(await page.evaluate(() => document.activeElement?.textContent?.trim().replace(/\s+/g, " "))).toBe(
      "Bergen (example.org)",
    );
    expect(page.url()).not.toContain("#");
  });

  test("W37 during an answer Escape closes the card and does not stop the answer", async () => {
    await begin();
    await ask(page, "sources");
    await say(page, "ponder 3");
    await page.locator("arp-message[data-status=running]").waitFor();
    await mark(1).focus();
    await card().waitFor();
    await page.keyboard.press("Escape");
    await card().waitFor({ state: "detached" });
    await log(page).getByText("Found it.").waitFor();
  });

  test("W37 sources are links without a referrer, with their hosts; an address of another kind is not a link", async () => {
    await begin();
    await ask(page, "sources");
    const items = page.locator("arp-sources li");
    await items.first().waitFor();
    expect(
      await items
        .locator("a")
        .evaluateAll((links) =>
          links.map((link) => [link.getAttribute("href"), link.getAttribute("rel"), link.getAttribute("target")]),
        ),
    ).toEqual([
      ["https://example.org/rain", "noopener noreferrer nofollow", "_blank"],
      ["https://example.org/bergen", "noopener noreferrer nofollow", "_blank"],
    ]);
    expect((await items.allInnerTexts()).map((text) => text.replace(/\s+/g, " ").trim())).toEqual([
      "Rain in Seattle (example.org) It rains on 160 days.",
      "Bergen (example.org)",
      "A table",
    ]);
  });
});

describe("times", () => {
  test("W38 a message has its time in the user's format, the same after a reload", async () => {
    await begin({ locale: "de-DE", timezoneId: "Asia/Tokyo" });
    const before = Date.now();
    await ask(page, "hello");
    const time = page.locator(".arp-said time");
    const at = new Date((await time.getAttribute("datetime")) ?? "");
    expect(at.getTime()).toBeGreaterThan(before - 1000);
    expect(at.getTime()).toBeLessThan(Date.now() + 1000);
    const clock = (moment: Date) =>
      new Intl.DateTimeFormat("de-DE", { hour: "2-digit", minute: "2-digit", timeZone: "Asia/Tokyo" }).format(moment);
    await expect.poll(() => time.innerText()).toBe(clock(at)); // its words come a moment after it
    await page.reload();
    await time.waitFor();
    await expect.poll(() => time.innerText()).toBe(clock(at)); // its words come a moment after it
    expect(await page.locator(".arp-day").count()).toBe(0); // all messages are from today
  });

  test("W38 an answer has the time of its end, the same after a reload and in older turns", async () => {
    await begin({ locale: "en-GB", timezoneId: "UTC" });
    await say(page, "ponder 1.2");
    await page.locator("arp-message[data-status=completed]").waitFor();
    const moment = async (place: string) =>
      new Date((await page.locator(`${place} time`).first().getAttribute("datetime")) ?? "").getTime();
    const [sent, ended] = [await moment(".arp-said"), await moment(".arp-under")];
    expect(ended - sent).toBeGreaterThanOrEqual(1200);
    expect(ended).toBeLessThan(Date.now() + 1000);
    await page.reload();
    await online(page);
    await page.locator(".arp-under time").waitFor();
    expect([await moment(".arp-said"), await moment(".arp-under")]).toEqual([sent, ended]);
    await converse(page, 52);
    await page.reload();
    await online(page);
    await page.getByRole("button", { name: "Load older" }).click();
    await page.locator(".arp-bubble", { hasText: "ponder" }).waitFor();
    expect(await moment(".arp-under")).toBe(ended);
  });

  test("W38 a past day is named above its messages", async () => {
    await begin({ locale: "en-GB", timezoneId: "UTC" });
    await ask(page, "hello");
    const at = (await page.locator(".arp-said time").getAttribute("datetime")) as string;
    const later = (days: number) => new Date(new Date(at).getTime() + days * 86_400_000);
    await page.clock.setFixedTime(later(1));
    await page.reload();
    await page.locator(".arp-day").getByText("Yesterday").waitFor();
    expect(await page.locator(".arp-day time").getAttribute("datetime")).toBe(at.slice(0, 10));
    await page.clock.setFixedTime(later(800));
    await page.reload();
    const named = new Intl.DateTimeFormat("en-GB", {
      weekday: "long",
      day: "numeric",
      month: "long",
      year: "numeric",
      timeZone: "UTC",
    }).format(new Date(at));
    await page.locator(".arp-day").getByText(named).waitFor();
  });
});

describe("steps", () => {
  test("W36 thinking and tools are folded; a running step shows its duration, without an announcement each second", async () => {
    await begin();
    await page.evaluate(() => {
      const lines: string[] = [];
      Object.assign(globalThis, { lines });
      for (const place of document.querySelectorAll(".arp-status, .arp-spoken, .arp-urgent")) {
        new MutationObserver(() => lines.push(place.textContent ?? "")).observe(place, {
          childList: true,
          subtree: true,
          characterData: true,
        });
      }
    });
    await say(page, "ponder 4");
    const dig = page.locator("details.arp-step", { hasText: "dig" });
    await dig.waitFor();
    expect(await page.locator("details.arp-step[open]").count()).toBe(0);
    await dig.locator("summary").click();
    const elapsed = dig.locator("arp-elapsed");
    await expect.poll(() => elapsed.innerText(), LONG).toMatch(/^[12]s$/);
    await expect.poll(() => elapsed.innerText(), LONG).toBe("3s");
    expect(await elapsed.getAttribute("aria-hidden")).toBe("true");
    expect(await page.evaluate(() => (globalThis as unknown as { lines: string[] }).lines)).toEqual(["Answering"]);
    await log(page).getByText("Found it.").waitFor();
    await expect.poll(() => elapsed.innerText(), LONG).toMatch(/^[3-9](?:\.\d)?s$/);
    expect(await dig.getAttribute("open")).not.toBeNull(); // opened by the user, so it stays open
    await page.locator("details.arp-thought summary").click();
    await page.getByText("Where to look first?").waitFor();
  });

  test("W35 steps can be hidden, and a picture can be beside answers", async () => {
    await begin();
    await set("showActivity", false);
    await set("avatar", "\u{1F989}");
    await ask(page, "ponder 0");
    expect(await page.locator(".arp-step").count()).toBe(0);
    expect(await page.locator(".arp-reply .arp-avatar").innerText()).toBe("\u{1F989}");
    await set("showActivity", true);
    await page.locator(".arp-step").first().waitFor();
  });
});

describe("the queue", () => {
  const queued = () => page.locator("arp-message[data-status=queued]");

  test("W24 after a failed answer the queue is paused, also over a reload, and continues on request", async () => {
    await begin();
    await say(page, "fail 1.5");
    await say(page, "one");
    await say(page, "two");
    await expect.poll(() => queued().count(), LONG).toBe(2);
    await page.locator("arp-message[data-status=failed]").waitFor();
    await expect
      .poll(() => queued().locator("p.arp-caption").allInnerTexts(), LONG)
      .toEqual(["Queued · The queue is paused", "Queued, number 2 · The queue is paused"]);
    await expect.poll(() => page.locator(".arp-status").innerText(), LONG).toBe("Failed. The queue is paused");
    await page.reload();
    await online(page);
    expect(await queued().count()).toBe(2);
    await page.getByRole("button", { name: "Continue" }).click();
    await log(page).getByText("You said: two").waitFor();
    expect(await page.locator(".arp-bubble").allInnerTexts()).toEqual(["fail 1.5", "one", "two"]);
    expect(await queued().count()).toBe(0);
  });

  test("W24 trying again answers the failed message, and then the waiting ones", async () => {
    await begin();
    await say(page, "fail-once 1.5");
    await say(page, "one");
    await say(page, "two");
    await page.getByRole("button", { name: "Continue" }).waitFor();
    await page.locator(".arp-trouble").getByRole("button", { name: "Try again" }).click();
    await log(page).getByText("You said: two").waitFor();
    expect(await page.locator(".arp-bubble").allInnerTexts()).toEqual(["fail-once 1.5", "one", "two"]);
    expect(await log(page).locator(".arp-reply strong").allInnerTexts()).toEqual(["fail-once 1.5", "one", "two"]);
    expect(await page.locator(".arp-notice, .arp-trouble").count()).toBe(0);
  });

  test("W24 the next message continues the queue too", async () => {
    await begin();
    await say(page, "fail 1");
    await say(page, "one");
    await page.getByRole("button", { name: "Continue" }).waitFor();
    await say(page, "two");
    await log(page).getByText("You said: two").waitFor();
    expect(await log(page).locator(".arp-reply strong").allInnerTexts()).toEqual(["one", "two"]);
  });
});

describe("errors", () => {
  test("W71 errors are reported in the user's language, with the server's text after them", async () => {
    await begin({ locale: "de-DE" });
    await ask(page, "fail");
    const card = page.locator(".arp-trouble p");
    await card.getByText("Der Agent konnte nicht antworten.").waitFor();
    const words = await card.locator(".arp-caption").innerText();
    await begin({ locale: "en-GB" });
    await ask(page, "fail");
    expect(await page.locator(".arp-trouble p").innerText()).toBe(words);
  });

  test("W71 a refusal is reported the same way, in a line above the message box", async () => {
    await begin({ locale: "fr-FR" });
    await ask(page, "hello");
    await say(page, "count 400");
    await log(page).getByText("3", { exact: true }).waitFor();
    await say(page, "waits");
    await page.locator("arp-message[data-status=queued]").waitFor(); // otherwise the running turn would be stopped for it
    await page.locator(".arp-under > button").last().dispatchEvent("click"); // streamed text moves it
    await page.locator(".arp-notice").getByText("Une réponse est en cours ; attendez ou arrêtez-la.").waitFor();
    await page.locator(".arp-notice .arp-caption").getByText("a turn runs").waitFor();
    await page.locator(".arp-stop").click();
  });
});

describe("components that failed", () => {
  test("W39 the agent is notified when a component cannot be drawn, and when it is drawn later", async () => {
    await begin();
    await ask(page, "table");
    await page.locator("arp-table table").waitFor();
    const id = await page.evaluate(() => {
      const chat = document.querySelector("arp-chat") as unknown as {
        activeClient: {
          store: {
            turnIds: { get(): string[] };
            turn(id: string): { get(): { output: { id: string; type: string }[] } };
          };
        };
      };
      const { store } = chat.activeClient;
      return store
        .turn(store.turnIds.get()[0] as string)
        .get()
        .output.find(({ type }) => type === "table")?.id;
    });
    await page.locator("arp-chat").evaluate((chat) => {
      (chat as unknown as Chat).components = {
        table: () => {
          throw new Error("no tables here");
        },
      };
    });
    await page.locator(".arp-failure").waitFor();
    await ask(page, `shown ${id}`);
    expect(await page.locator(".arp-reply").last().innerText()).toContain("failed");
    await page
      .locator("arp-chat")
      .evaluate(
        (chat) => void ((chat as unknown as Chat).components = { table: () => document.createTextNode("a table") }),
      );
    await page.locator(".arp-failure").waitFor({ state: "detached" });
    await ask(page, `shown ${id}`);
    expect(await page.locator(".arp-reply").last().innerText()).toContain("native");
  });
});

describe("keys", () => {
  const running = () => page.locator("arp-message[data-status=running], arp-message[data-status=waiting]");

  test("W89 in a field of a form keys only write: Escape does not stop, and Alt with arrows does not move", async () => {
    await begin();
    await say(page, "form");
    const field = page.getByRole("textbox", { name: "Name" });
    await field.fill("Ada");
    await field.press("Escape");
    await field.press("Alt+ArrowUp");
    expect(await field.evaluate((one) => one === document.activeElement)).toBe(true);
    await field.press("Enter");
    await log(page).getByText("Hello Ada.").waitFor();
  });

  test("W89 a key that another script has handled does nothing", async () => {
    await begin();
    await page.evaluate(() => document.addEventListener("keydown", (event) => event.preventDefault(), true));
    await say(page, "ponder 2").catch(() => undefined);
    expect(await running().count()).toBe(0); // Enter was handled too
    await page.getByRole("button", { name: "Send" }).click();
    await running().waitFor();
    await box(page).press("Escape");
    await log(page).getByText("Found it.").waitFor();
  });

  test("W89 keys can be changed or removed, and the button names them", async () => {
    await begin();
    await set("keys", { stop: "Control+.", previous: "Alt+k", newest: null });
    await say(page, "ponder 6");
    await running().waitFor();
    const stop = page.getByRole("button", { name: "Stop" });
    expect([await stop.getAttribute("title"), await stop.getAttribute("aria-keyshortcuts")]).toEqual([
      "Stop (Ctrl .)",
      "Control+.",
    ]);
    await box(page).press("Escape");
    await box(page).press("Alt+k");
    expect(await page.evaluate(() => document.activeElement?.localName)).toBe("article");
    expect(await running().count()).toBe(1);
    await page.keyboard.press("Control+.");
    await page.locator("arp-message[data-status=cancelled]").waitFor();
  });
});
