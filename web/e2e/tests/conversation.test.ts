/** The message box, messages, chats, questions (webui.md W2–W5, W26–W39, W50, W51, W57–W61). */

import { readFileSync } from "node:fs";

import { describe, expect, test } from "vitest";

import { APP, ArpServer, ask, box, converse, log, online, say, shape } from "../src/host.js";
import { begin, faults, page, usePages } from "../src/stage.js";

usePages();

const bubbles = () => page.locator(".arp-bubble").allInnerTexts();

describe("start", () => {
  test("W90 these tests detect errors, unhandled rejections and missing files", async () => {
    await begin();
    await page.evaluate(async () => {
      console.error("an error of the page");
      void Promise.reject(new Error("nobody caught it"));
      await fetch("_static/nowhere.js");
    });
    for (const fault of [/^an error of the page/, /nobody caught it/, /404/]) {
      await expect.poll(() => faults.lines.filter((line) => fault.test(line)).length).toBe(1);
    }
    faults.lines.length = 0; // every other test fails if there are faults
  });

  test("W2 W3 the first load requests at most five files, all from this server", async () => {
    await begin();
    const first = await page.evaluate(() => {
      const usable = performance.getEntriesByName("arp-usable")[0]?.startTime ?? 0;
      const files = performance.getEntriesByType("resource") as PerformanceResourceTiming[];
      return {
        usable,
        names: files
          .filter(({ startTime, name }) => startTime < usable && /\.(?:js|css|svg)$/.test(name))
          .map(({ name }) => name),
      };
    });
    console.log(`first load: ${first.names.length + 1} files, the box is usable after ${Math.round(first.usable)} ms`);
    expect(first.usable).toBeGreaterThan(0);
    expect(first.names.length + 1).toBeLessThanOrEqual(6);
  });

  test("W4 the page works without a secure context, and copying has a fallback", async () => {
    const named = await ArpServer.start(APP, "--allow-host", "other.test", "--token", "harbour");
    try {
      const url = `${named.url.replace("127.0.0.1", "other.test")}#token=harbour`;
      await begin({ url });
      expect(await page.evaluate(() => isSecureContext)).toBe(false);
      await ask(page, "hello");
      await page.getByRole("button", { name: "Copy", exact: true }).click();
      await page.getByRole("button", { name: /Copied|Could not copy/ }).waitFor();
      // The browser reports that this name is not a secure origin, which is the subject of this test.
      faults.lines.splice(0, faults.lines.length, ...faults.lines.filter((line) => !line.includes("Opener-Policy")));
    } finally {
      await page.context().close();
      await named.stop();
    }
  });

  test("W5 the welcome shows title, description and suggestions; one click sends", async () => {
    await begin();
    await page.getByRole("heading", { name: "Harbour" }).last().waitFor();
    await page.getByText("Answers questions about ships, berths and tides.").waitFor();
    await page.getByRole("button", { name: "hello" }).click();
    await log(page).getByText("You said: hello").waitFor();
  });
});

describe("the message box", () => {
  test("W26 Enter sends, Shift and Enter break the line; during composition Enter does nothing", async () => {
    await begin();
    await box(page).fill("にほ");
    await box(page).dispatchEvent("keydown", { key: "Enter", isComposing: true });
    await box(page).dispatchEvent("keydown", { key: "Enter", keyCode: 229 });
    await box(page).press("Shift+Enter");
    expect(await box(page).inputValue()).toBe("にほ\n");
    await box(page).press("Control+Enter");
    await log(page).getByText("にほ").first().waitFor();
  });

  test("W27 a draft survives a reload and another chat; Up restores the last sent message", async () => {
    await begin();
    await ask(page, "hello");
    await box(page).fill("not yet");
    await page.reload();
    await online(page);
    expect(await box(page).inputValue()).toBe("not yet");
    await page.getByRole("link", { name: "New chat" }).first().click();
    await page.locator(".arp-welcome").waitFor();
    expect(await box(page).inputValue()).toBe("");
    await page.goBack();
    await log(page).getByText("You said: hello").waitFor();
    expect(await box(page).inputValue()).toBe("not yet");
    await box(page).fill("");
    await box(page).press("ArrowUp");
    expect(await box(page).inputValue()).toBe("hello");
  });

  test("W27 a draft survives a switch to a new chat and back that is faster than the server", async () => {
    await begin();
    await ask(page, "hello");
    await box(page).fill("not yet");
    await page.evaluate(async () => {
      document.querySelector<HTMLElement>(".page-new")?.click();
      const back = new Promise((resolve) => addEventListener("popstate", resolve, { once: true }));
      history.back();
      await back;
    });
    await log(page).getByText("You said: hello").waitFor();
    expect(await box(page).inputValue()).toBe("not yet");
    await page.getByRole("link", { name: "New chat" }).first().click();
    await page.locator(".arp-welcome").waitFor();
    expect(await box(page).inputValue()).toBe("");
  });

  test("W28 the box grows to 40 % of the window, then scrolls; sending keeps the focus", async () => {
    await begin();
    await box(page).fill(Array.from({ length: 60 }, (_, at) => `line ${at}`).join("\n"));
    const { height, scrolls } = await box(page).evaluate((element) => ({
      height: element.clientHeight,
      scrolls: element.scrollHeight > element.clientHeight,
    }));
    expect([height <= 320, height > 250, scrolls]).toEqual([true, true, true]);
    await box(page).press("Enter");
    expect(await box(page).evaluate((element) => element === document.activeElement)).toBe(true);
  });

  test("W29 W30 files from the button or a drop are shown, can be removed, and are sent; a file may be too big", async () => {
    await begin();
    await page.locator("input[type=file]").setInputFiles([
      { name: "a.txt", mimeType: "text/plain", buffer: Buffer.from("12345") },
      { name: "b.txt", mimeType: "text/plain", buffer: Buffer.from("123") },
    ]);
    await page.getByRole("button", { name: "Remove b.txt" }).click();
    await page.locator(".arp-body").evaluate((place) => {
      const data = new DataTransfer();
      data.items.add(new File(["1234567"], "c.txt", { type: "text/plain" }));
      const big = new File([], "big.bin");
      Object.defineProperty(big, "size", { value: 30 << 20 });
      for (const type of ["dragover", "drop"])
        place.dispatchEvent(new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true }));
      (document.querySelector("arp-composer") as unknown as { addFiles(files: File[]): void }).addFiles([big]);
    });
    await page.locator(".arp-problem", { hasText: /big\.bin is too big/ }).waitFor();
    await box(page).press("Enter");
    await log(page).getByText("Got a.txt: 5 bytes, c.txt: 7 bytes").waitFor();
    expect(await page.locator(".arp-said .arp-file-name").allInnerTexts()).toEqual(["a.txt", "c.txt"]);
  });

  test("W30 a file that is dropped anywhere on the page is attached, and the browser does not open it", async () => {
    await begin();
    const places = [".page-side", ".page-head", "arp-composer textarea", ".arp-scroller"];
    for (const [number, name] of places.entries()) {
      const opens = await page.locator(name).evaluate((place, number) => {
        const data = new DataTransfer();
        data.items.add(new File(["1234567"], `${number}.txt`, { type: "text/plain" }));
        const init = { dataTransfer: data, bubbles: true, cancelable: true };
        return ["dragover", "drop"].map((type) => place.dispatchEvent(new DragEvent(type, init)));
      }, number);
      expect([name, opens]).toEqual([name, [false, false]]);
    }
    expect(await page.locator("arp-composer .arp-file-name").allInnerTexts()).toEqual([
      "0.txt",
      "1.txt",
      "2.txt",
      "3.txt",
    ]);
    expect(await page.locator(".arp-drop").count()).toBe(0);
  });

  test("W31 a fully typed command without choices is sent by one Enter", async () => {
    await begin();
    await box(page).pressSequentially("/explain");
    await page.getByRole("listbox", { name: "Commands" }).waitFor();
    await box(page).press("Enter");
    await log(page).getByText("It counts.").waitFor();
  });

  test("W31 a slash opens the server's commands; arrows select, Enter accepts, Escape closes", async () => {
    await begin();
    await box(page).pressSequentially("/ex");
    const list = page.getByRole("listbox", { name: "Commands" });
    await list.waitFor();
    expect(await list.getByRole("option").count()).toBe(2);
    await box(page).press("ArrowDown");
    expect(await box(page).getAttribute("aria-activedescendant")).toBe(
      await list.getByRole("option").nth(1).getAttribute("id"),
    );
    await box(page).press("Escape");
    await list.waitFor({ state: "hidden" });
    expect(await box(page).inputValue()).toBe("/ex");
    await box(page).pressSequentially("p");
    await list.waitFor();
    await box(page).press("Enter");
    expect(await box(page).inputValue()).toBe("/export ");
    await box(page).pressSequentially("json");
    await box(page).press("Enter");
    await log(page).getByText("Exported as json.").waitFor();
  });
});

describe("messages", () => {
  test("W32 a message is copied as Markdown and as rich text", async () => {
    await begin();
    await ask(page, "hello");
    await page.getByRole("button", { name: "Copy", exact: true }).click();
    await page.getByRole("button", { name: "Copied" }).waitFor();
    const copied = await page.evaluate(async () => {
      const [item] = await navigator.clipboard.read();
      const read = async (type: string) => (await item?.getType(type))?.text();
      return [await read("text/plain"), await read("text/html")];
    });
    expect(copied[0]).toBe("You said: **hello**");
    expect(copied[1]).toContain("<strong>hello</strong>");
  });

  test("W33 editing and regenerating begin another branch; the old ones exist after a reload", async () => {
    await begin();
    await ask(page, "one");
    await ask(page, "two");
    await page.locator(".arp-said").nth(1).hover();
    await page.getByRole("button", { name: "Edit" }).nth(1).click();
    await page.locator(".arp-editing textarea").fill("three");
    await page.keyboard.press("Enter");
    await log(page).getByText("You said: three").waitFor();
    expect(await bubbles()).toEqual(["one", "three"]);
    await page.getByRole("group", { name: "Version 2 of 2" }).getByRole("button", { name: "Previous" }).click();
    await log(page).getByText("You said: two").waitFor();
    await page.reload();
    await online(page);
    await log(page).getByText("You said: two").waitFor();
    await page.getByRole("group", { name: "Version 1 of 2" }).getByRole("button", { name: "Next" }).click();
    await log(page).getByText("You said: three").waitFor();
    await page.getByRole("button", { name: "Regenerate" }).last().click();
    await page.getByRole("group", { name: "Version 3 of 3" }).waitFor();
    expect(await bubbles()).toEqual(["one", "three"]);
  });

  test("W33 an edit replaces the running turn, but not a queued one", async () => {
    await begin();
    await ask(page, "one");
    await say(page, "count 2000");
    await log(page).getByText("5", { exact: false }).first().waitFor();
    const edit = async (text: string) => {
      await page.locator(".arp-said").first().hover();
      await page.getByRole("button", { name: "Edit" }).first().dispatchEvent("click"); // it moves with the stream
      await page.locator(".arp-editing textarea").fill(text);
      await page.keyboard.press("Enter");
    };
    await edit("three");
    await log(page).getByText("You said: three").waitFor();
    expect(await bubbles()).toEqual(["three"]);
    await page.getByRole("group", { name: "Version 2 of 2" }).getByRole("button", { name: "Previous" }).click();
    await log(page).locator(".arp-ending", { hasText: "Stopped" }).waitFor();
    expect(await bubbles()).toEqual(["one", "count 2000"]);
    await say(page, "count 2000");
    await say(page, "waits");
    await log(page).getByText("Queued", { exact: true }).waitFor();
    await edit("four");
    await page
      .locator(".arp-notice, [role=alert]", { hasText: /turn runs|running/i })
      .first()
      .waitFor();
    expect(await bubbles()).toEqual(["one", "count 2000", "count 2000", "waits"]);
    await page.getByRole("button", { name: "Stop" }).click();
  });

  test("W24 a queued message can be changed, moved to the front, and removed", async () => {
    await begin();
    await say(page, "count 2000");
    for (const text of ["second", "third", "fourth"]) await say(page, text);
    await log(page).getByText("Queued, number 3").waitFor();
    const third = page.locator("arp-message", { hasText: "third" });
    await third.getByRole("button", { name: "Answer this first" }).dispatchEvent("click"); // it moves with the stream
    await third.getByText("Queued", { exact: true }).waitFor();
    const second = page.locator("arp-message", { hasText: "second" });
    await second.getByRole("button", { name: "Remove from the queue" }).dispatchEvent("click");
    const fourth = page.locator("arp-message", { hasText: "fourth" });
    await fourth.getByRole("button", { name: "Edit" }).dispatchEvent("click");
    await page.locator(".arp-editing textarea").fill("fifth");
    await page.keyboard.press("Enter");
    await page.locator(".arp-bubble", { hasText: "fifth" }).waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await log(page).getByText("You said: fifth").waitFor();
    expect(await page.locator(".arp-reply p").allInnerTexts()).toEqual(
      expect.arrayContaining(["You said: third", "You said: fifth"]),
    );
    expect(await log(page).innerText()).not.toContain("You said: second");
  });

  test("W30 a refused message shows its error once, beside it, and can be sent again", async () => {
    const own = await ArpServer.start(`${APP}:strict`);
    try {
      await begin({ url: own.url });
      await say(page, "count 150");
      await log(page).getByText("5", { exact: true }).waitFor();
      await say(page, "too early");
      const refused = page.locator(".arp-outgoing[data-phase=refused]");
      await refused.getByRole("alert").getByText("Not sent: a turn is running").waitFor();
      expect(await refused.locator(".arp-bubble").innerText()).toBe("too early");
      await log(page).getByText("150", { exact: true }).waitFor();
      await page.locator("arp-message[data-status=completed]").waitFor();
      expect(await page.locator("body").getByText("a turn is running").count()).toBe(1);
      await refused.getByRole("button", { name: "Send again" }).click();
      await log(page).getByText("You said: too early").waitFor();
      expect(await page.locator("body").getByText("a turn is running").count()).toBe(0);
      expect(await bubbles()).toEqual(["count 150", "too early"]);
    } finally {
      await page.context().close();
      await own.stop();
    }
  });

  test("W34 text, component and text keep their order, also after a reload", async () => {
    await begin();
    await ask(page, "mixed");
    await page.locator("arp-chart svg").first().waitFor();
    await page.locator("arp-table table").waitFor();
    const order = await page
      .locator(".arp-reply")
      .evaluate((reply) =>
        [...reply.children].map(({ localName, className }) => (localName.startsWith("arp-") ? localName : className)),
      );
    expect(order).toEqual([
      "arp-hidden",
      "arp-prose",
      "arp-activity",
      "arp-chart",
      "arp-prose",
      "arp-table",
      "arp-prose",
    ]);
    const before = await shape(page);
    await page.reload();
    await online(page);
    await page.locator("arp-chart svg").first().waitFor();
    await page.locator("arp-table table").waitFor();
    await log(page).getByText("And the end.").waitFor();
    expect(await shape(page)).toBe(before);
  });

  test("W35 two calls of one tool end separately; an opened one stays open, with its arguments", async () => {
    await begin();
    await say(page, "tools");
    const steps = page.locator(".arp-step");
    await page.locator(".arp-step[data-state=failed]").waitFor();
    expect(await steps.nth(0).getAttribute("data-state")).toBe("running");
    await steps.nth(0).locator("summary").click();
    await steps
      .nth(0)
      .locator("dl.arp-values", { hasText: /number\s*1/ })
      .waitFor();
    await log(page).getByText("Both are done.").waitFor();
    expect(
      await steps.evaluateAll((all) =>
        all.map((step) => [(step as HTMLElement).dataset.state, (step as HTMLDetailsElement).open]),
      ),
    ).toEqual([
      ["done", true],
      ["failed", false],
    ]);
  });
});

describe("questions", () => {
  test("W50 a question is answered once while the agent waits, and another tab shows the answer", async () => {
    await begin();
    await say(page, "confirm");
    await page.getByRole("button", { name: "Do it" }).waitFor();
    const other = await page.context().newPage();
    await other.goto(page.url());
    await other.getByRole("button", { name: "Leave it" }).click();
    await log(page).getByText("It was left.").waitFor();
    expect(await page.getByRole("button", { name: /Do it/ }).isDisabled()).toBe(true);
    await log(other).getByText("It was left.").waitFor();
    expect(await shape(page)).toBe(await shape(other));
  });

  test("W50 rows of a table are selected by keys, sorted and filtered; another tab shows the answer read-only", async () => {
    await begin();
    await say(page, "rows");
    const card = page.locator("arp-table");
    const submit = card.getByRole("button", { name: "Submit" });
    await submit.waitFor();
    const other = await page.context().newPage();
    await other.goto(page.url());
    await other.getByRole("checkbox", { name: "Oslo" }).waitFor();
    await card.getByRole("button", { name: "City" }).click();
    await expect
      .poll(() => card.locator("tbody tr td:nth-child(2)").allInnerTexts())
      .toEqual(["Bergen", "Oslo", "Zürich"]);
    expect(await submit.isDisabled()).toBe(true);
    await card.getByRole("checkbox", { name: "Bergen" }).focus();
    await page.keyboard.press("Space");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Space");
    await page.keyboard.press("Space");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Space");
    await card.getByText("2 selected").waitFor();
    await card.getByRole("searchbox").fill("zür");
    await expect.poll(() => card.getByRole("checkbox").count()).toBe(1);
    await submit.focus();
    await page.keyboard.press("Enter");
    await log(page).getByText("Rows [1, 2].").waitFor();
    await log(other).getByText("Rows [1, 2].").waitFor();
    const boxes = other.locator("arp-table").getByRole("checkbox");
    expect(
      await boxes.evaluateAll((all) =>
        all.map((box) => [(box as HTMLInputElement).checked, (box as HTMLInputElement).disabled]),
      ),
    ).toEqual([
      [false, true],
      [true, true],
      [true, true],
    ]);
    await other.locator("arp-table .arp-standing", { hasText: "Answered" }).waitFor();
    expect(await other.locator("arp-table").getByRole("button", { name: "Submit" }).count()).toBe(0);
  });

  test("W51 permission is asked for in a card and answered by keys; Escape and other keys allow nothing", async () => {
    await begin();
    await say(page, "permission");
    const card = page.locator("arp-permissions .arp-permission");
    await card.waitFor();
    await page.getByRole("group", { name: "edit_file asks for permission" }).waitFor();
    await card.locator("arp-diff").waitFor();
    expect(await page.evaluate(() => document.activeElement?.closest(".arp-permission"))).toBeNull();
    await box(page).press("1"); // writing is not answering
    expect(await card.count()).toBe(1);
    const other = await page.context().newPage();
    await other.goto(page.url());
    await other.locator(".arp-permission").waitFor();
    await card.focus();
    await page.keyboard.press("3");
    await log(page).getByText("It was left alone.").waitFor();
    await other.locator(".arp-permission").waitFor({ state: "hidden" });
    await other.locator(".arp-permission-note", { hasText: "Denied" }).waitFor();
    await box(page).fill("");
    await ask2("permission", "1", "It was changed.");
    await say(page, "permission");
    await card.waitFor();
    await card.focus();
    await page.keyboard.press("Escape");
    await page.locator(".arp-ending", { hasText: "Stopped" }).waitFor();
    expect(await log(page).getByText("It was changed.").count()).toBe(1);
  });

  test("W51 two tools ask at once; arguments are edited as JSON, and only an object is sent", async () => {
    await begin();
    await say(page, "permission two");
    const cards = page.locator(".arp-permission");
    await expect.poll(() => cards.count()).toBe(2);
    const [one, two] = [cards.filter({ hasText: "Run one?" }), cards.filter({ hasText: "Run two?" })];
    expect(await one.getByRole("button", { name: "Allow for this chat" }).count()).toBe(0);
    await two.getByRole("button", { name: "Edit" }).click();
    const text = two.getByRole("textbox", { name: "Arguments" });
    expect(JSON.parse(await text.inputValue())).toEqual({ command: "echo two", n: 1 });
    await text.fill('{"command": "pwd", "n": 12345678901234567890}');
    await text.press("1"); // writing is not answering
    await text.fill('{"command": "pwd", "command": "rm"}');
    await two.getByRole("button", { name: "Allow once" }).click();
    await two.getByRole("alert").getByText("Write a JSON object").waitFor();
    expect(await text.getAttribute("aria-invalid")).toBe("true");
    await text.fill('{"command": "pwd", "n": [1.5]}');
    await two.getByRole("alert").waitFor({ state: "detached" });
    await two.getByRole("button", { name: "Allow once" }).click();
    await expect.poll(() => cards.count()).toBe(1);
    await one.getByRole("button", { name: "Deny" }).click();
    await log(page).getByText('two: allow {"command":"pwd","n":[1.5]}').waitFor();
    await log(page).getByText('one: deny {"command":"echo one","n":1}').waitFor();
  });

  test("W51 the box of an input is as large as its text; Cancel restores the agent's input", async () => {
    await begin({ viewport: { width: 1000, height: 1600 } });
    await say(page, "permission long");
    const card = page.locator(".arp-permission");
    await card.getByRole("button", { name: "Edit" }).click();
    const text = card.getByRole("textbox", { name: "Arguments" });
    const { scrollHeight, clientHeight } = await text.evaluate(({ scrollHeight, clientHeight }) => ({
      scrollHeight,
      clientHeight,
    }));
    expect(scrollHeight).toBeLessThanOrEqual(clientHeight + 1);
    expect(clientHeight).toBeGreaterThan(400);
    await page.screenshot({ path: `${process.env.ARP_SHOTS ?? "/tmp"}/edit.png` });
    await text.fill("{}");
    await expect.poll(() => text.evaluate((area) => area.clientHeight)).toBeLessThan(100);
    await card.getByRole("button", { name: "Cancel" }).click();
    expect(
      await card.getByRole("button", { name: "Edit" }).evaluate((button) => button === document.activeElement),
    ).toBe(true);
    await card.getByText("option 29").waitFor();
    expect(await text.count()).toBe(0);
    await card.getByRole("button", { name: "Allow once" }).click();
    await log(page).getByText('"option 29":29').waitFor();
  });

  test("W51 the rule for the chat is shown, and later calls do not ask; of two screens the first answer counts", async () => {
    await begin();
    await say(page, "permission");
    const card = page.locator(".arp-permission");
    await card.getByText("changes of files").waitFor();
    const other = await page.context().newPage();
    await other.goto(page.url());
    await other.locator(".arp-permission").waitFor();
    // Both are pressed within one frame; with a mouse click, the other card might be gone already.
    await Promise.all(
      [page, other].map((each) =>
        each
          .locator(".arp-permission")
          .evaluate((shown) => {
            for (const button of shown.querySelectorAll("button"))
              if (button.textContent?.includes("Allow for this chat")) button.click();
          })
          .catch(() => undefined),
      ),
    );
    for (const each of [page, other]) {
      await log(each).getByText("It was changed.").waitFor();
      await each.locator(".arp-permission").waitFor({ state: "detached" });
    }
    await ask(page, "permission");
    expect(await log(page).getByText("It was changed.").count()).toBe(2);
  });

  test("W51 a refused answer shows its error and the question again", async () => {
    await begin();
    await page.routeWebSocket("**/_arp/v1", (socket) => {
      const server = socket.connectToServer();
      // The first answer is about another input.
      let isFirst = true;
      socket.onMessage((frame) => {
        const changed = isFirst
          ? String(frame).replace(/"digest":"[0-9a-f]{64}"/, `"digest":"${"0".repeat(64)}"`)
          : String(frame);
        isFirst = isFirst && changed === String(frame);
        server.send(changed);
      });
    });
    await page.reload();
    await online(page);
    await say(page, "permission");
    const card = page.locator(".arp-permission");
    await card.getByRole("button", { name: "Allow once" }).click();
    await card.getByRole("alert").getByText("another input").waitFor();
    await card.getByRole("button", { name: "Allow once" }).click();
    await log(page).getByText("It was changed.").waitFor();
  });

  test("W51 the remaining time is shown, and after the deadline nothing can be allowed", async () => {
    await begin();
    await say(page, "soon 3");
    const card = page.locator(".arp-permission");
    await card
      .getByRole("timer")
      .getByText(/^0:0[1-3] left$/)
      .waitFor();
    await log(page).getByText("It is expired.").waitFor();
    await card.waitFor({ state: "detached" });
    await page.locator(".arp-permission-note", { hasText: "Expired" }).waitFor();
  });

  test("W80 misleading characters are visible in a permission request", async () => {
    await begin();
    await say(page, "permission hidden");
    await page.locator(".arp-permission").getByText("⟨U+202E⟩").first().waitFor();
  });

  test("W39 W84 an unknown type is a plain card, and the rest of the chat works", async () => {
    await begin();
    await ask(page, `show ${JSON.stringify([{ type: "table", props: { headers: ["a"], rows: [["1"]] } }])}`);
    await page.locator("arp-table table").waitFor();
    await ask(page, "hello");
    await log(page).getByText("You said: hello").waitFor();
  });
});

async function ask2(text: string, key: string, answer: string): Promise<void> {
  await say(page, text);
  const card = page.locator(".arp-permission");
  await card.waitFor();
  await card.focus();
  await page.keyboard.press(key);
  await log(page).getByText(answer).waitFor();
}

describe("chats", () => {
  test("W57 the list can search, rename, pin, delete with undo, and move by arrows; it marks the open chat", async () => {
    const own = await ArpServer.start(APP);
    try {
      await begin({ url: own.url });
      for (const text of ["about ships", "about tides", "about cranes"]) {
        await page.getByRole("link", { name: "New chat" }).first().click();
        await page.locator(".arp-welcome").waitFor();
        await ask(page, text);
      }
      const list = page.getByRole("navigation", { name: "Chats" });
      const names = () => list.locator(".arp-session-title").allInnerTexts();
      await expect.poll(names).toEqual(["about cranes", "about tides", "about ships"]);
      expect(await list.locator("[aria-current=page]").innerText()).toBe("about cranes");
      await menu("about ships", "Pin");
      await expect.poll(names).toEqual(["about ships", "about cranes", "about tides"]);
      await menu("about tides", "Rename");
      await page.locator(".arp-session-name").fill("High water");
      await page.keyboard.press("Enter");
      await expect.poll(names).toEqual(["about ships", "about cranes", "High water"]);
      await page.getByRole("searchbox").fill("crane");
      await expect.poll(names).toEqual(["about cranes"]);
      await page.getByRole("searchbox").fill("");
      await expect.poll(names).toHaveLength(3);
      await menu("High water", "Delete");
      await expect.poll(names).toEqual(["about ships", "about cranes"]);
      await page.getByRole("button", { name: "Undo" }).click();
      await expect.poll(names).toEqual(["about ships", "about cranes", "High water"]);
      await log(page).getByText("You said: about tides").waitFor();
      await list.getByRole("link").first().focus();
      await page.keyboard.press("ArrowDown");
      expect(await page.evaluate(() => document.activeElement?.textContent?.trim())).toBe("about cranes");
    } finally {
      await page.context().close();
      await own.stop();
    }
  });

  async function menu(chat: string, item: string): Promise<void> {
    await page.getByRole("button", { name: `Chat options: ${chat}` }).click();
    await page.getByRole("menuitem", { name: item, exact: true }).click();
  }

  test("W58 W59 the address names the chat; quick back and forward never show messages of another chat", async () => {
    await begin();
    const urls: string[] = [];
    for (const text of ["alpha", "beta", "gamma"]) {
      await page.getByRole("link", { name: "New chat" }).first().click();
      await page.locator(".arp-welcome").waitFor();
      await ask(page, text);
      urls.push(page.url());
    }
    expect(new Set(urls).size).toBe(3);
    for (let round = 0; round < 6; round += 1) {
      await page.evaluate(() => history.back());
      await page.evaluate(() => history.forward());
    }
    await page.goto(urls[0] as string);
    await log(page).getByText("You said: alpha").waitFor();
    expect(await bubbles()).toEqual(["alpha"]);
    const other = await page.context().newPage();
    await other.goto(urls[0] as string);
    await log(other).getByText("You said: alpha").waitFor();
    await ask(other, "more");
    await log(page).getByText("You said: more").waitFor();
  });

  test("W60 a long chat shows its newest 50 turns; older ones are loaded above without moving the visible text", async () => {
    await begin();
    await converse(page, 70);
    await page.reload();
    await online(page);
    await log(page).getByText("You said: turn 70", { exact: true }).waitFor();
    await expect.poll(() => page.locator("arp-message").count()).toBe(50);
    const scroller = page.locator(".arp-scroller");
    await page.mouse.move(500, 300);
    await page.mouse.wheel(0, -100_000);
    await expect.poll(() => page.locator("arp-message").count()).toBe(70);
    expect(await page.locator(".arp-bubble").allTextContents()).toEqual(
      Array.from({ length: 70 }, (_, at) => `turn ${at + 1}`),
    );
    const place = await page
      .locator(".arp-bubble", { hasText: /^turn 21$/ })
      .evaluate((bubble) => bubble.getBoundingClientRect().top);
    expect(await scroller.evaluate((element) => element.scrollTop)).toBeGreaterThan(500);
    expect(place).toBeGreaterThan(-200);
  });

  test("W60 turns between one that still changes and the newest ones are loaded in their place", async () => {
    await begin();
    await converse(page, 3);
    await ask(page, "board");
    await converse(page, 30);
    await ask(page, "board Changed");
    await converse(page, 30);
    await page.reload();
    await online(page);
    await expect.poll(() => page.locator("arp-message").count()).toBe(51);
    const turns = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => `turn ${from + at}`);
    const sentTexts = () => log(page).locator(".arp-bubble").allTextContents();
    expect(await sentTexts()).toEqual(["board", ...turns(12, 30), "board Changed", ...turns(1, 30)]);
    await log(page).getByRole("button", { name: "Load older messages" }).click();
    await page.mouse.move(500, 300);
    await page.mouse.wheel(0, -100_000); // older turns are loaded by scrolling
    await expect.poll(sentTexts).toEqual([...turns(1, 3), "board", ...turns(1, 30), "board Changed", ...turns(1, 30)]);
    expect(await page.locator(".arp-older").count()).toBe(0);
    await ask(page, "board Again");
    await log(page).locator("arp-status-card").getByText("Again").waitFor(); // the turn still runs
  });

  test("W60 without older turns none are offered, however many turns there are", async () => {
    await begin();
    await converse(page, 50);
    await say(page, "count 1000");
    await log(page).getByText("5", { exact: true }).waitFor();
    for (const text of ["one", "two"]) await say(page, text);
    await expect.poll(() => page.locator("arp-message[data-status=queued]").count()).toBe(2);
    await page.reload();
    await online(page);
    await expect.poll(() => page.locator("arp-message").count()).toBe(53);
    expect(await page.locator(".arp-older").count()).toBe(0);
  });

  test("W61 a chat is exported as Markdown, JSON and a page; the imported JSON shows the same", async () => {
    await begin();
    await ask(page, "mixed");
    await page.locator("arp-table table").waitFor();
    const save = async (name: string) => {
      await page.getByRole("button", { name: "Settings" }).click();
      const [download] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("menuitem", { name, exact: true }).click(),
      ]);
      return { path: await download.path(), text: readFileSync(await download.path(), "utf8") };
    };
    const markdown = (await save("Markdown")).text;
    expect(markdown).toContain("## You\n\nmixed");
    expect(markdown).toContain("| Zürich | 443 |");
    const html = (await save("HTML")).text;
    expect(html).toContain("Zürich");
    expect(html).not.toMatch(/<script|<button|<details class="arp-menu/);
    const { path } = await save("JSON");
    await page.getByRole("button", { name: "Settings" }).click();
    const [chooser] = await Promise.all([
      page.waitForEvent("filechooser"),
      page.getByRole("menuitem", { name: "Import" }).click(),
    ]);
    await chooser.setFiles(path);
    const dialog = page.getByRole("dialog");
    await dialog.locator("arp-table table").waitFor();
    expect(await dialog.locator(".arp-bubble").allInnerTexts()).toEqual(["mixed"]);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "hidden" });
  });
});
