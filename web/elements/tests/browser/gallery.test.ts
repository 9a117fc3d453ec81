// @vitest-environment node
/** All components in all states, in a browser. */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { differing, hostile, looks, outside, steady } from "./hostile.js";
import { axe, chromiumPath, GalleryHost, waitUntilDrawn } from "./page.js";

describe.skipIf(chromiumPath === undefined)("the gallery", () => {
  let host: GalleryHost;
  beforeAll(async () => void (host = await GalleryHost.start()), 120_000);
  afterAll(() => host.stop());

  test.each([
    ["light, left to right", "theme=light"],
    ["dark, right to left", "theme=dark&locale=ar"],
    ["light, right to left", "theme=light&dir=rtl"],
    ["dark, left to right", "theme=dark"],
  ])("W62 W67 axe finds no violation in any state: %s", { timeout: 120_000 }, async (_name, query) => {
    const { page } = await host.open(query);
    expect(await axe(page)).toEqual([]);
    await page.context().close();
  });

  test("W77 W79 W90 no policy is violated, no other server is contacted, and nothing is logged", async () => {
    const { page, complaints, foreign } = await host.open();
    await page.waitForSelector(".arp-k-keyword");
    await page.waitForSelector("math");
    expect(complaints).toEqual([]);
    expect(foreign).toEqual([]);
    await page.context().close();
  });

  test("W68 at a width of 320 pixels nothing overflows the page", async () => {
    const { page } = await host.open("", { width: 320 });
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(320);
    await page.context().close();
  });

  test("W68 every scrolling box can be focused and has a name", async () => {
    const { page } = await host.open("", { width: 360 });
    const nameless = await page.evaluate(() =>
      [...document.querySelectorAll<HTMLElement>(".arp *")]
        .filter((one) => /auto|scroll/.test(getComputedStyle(one).overflowX) && one.scrollWidth > one.clientWidth + 1)
        .filter(
          (one) => !(one.tabIndex === 0 && one.getAttribute("aria-label")) && one.getAttribute("role") !== "tablist",
        )
        .map((one) => one.className),
    );
    expect(nameless).toEqual([]);
    await page.context().close();
  });

  test("W69 reduced motion disables animations, and forced colours keep borders and icons", async () => {
    const { page } = await host.open("only=progress", { reducedMotion: "reduce", forcedColors: "active" });
    const [animation, border] = await page.evaluate(() => {
      const icon = document.querySelector("li[data-state=active] .arp-icon") as Element;
      const card = document.querySelector(".arp-card") as Element;
      return [getComputedStyle(icon).animationName, getComputedStyle(card).borderTopStyle];
    });
    expect([animation, border]).toEqual(["none", "solid"]);
    await page.context().close();
  });

  test.each(["#ffe100", "#0b6e63", "#7d7d7d", "#e00000", "#00a0ff", "#111", "#fafafa"])(
    "W70 text on the accent %s is readable",
    async (accent) => {
      const { page } = await host.open("only=confirm");
      const contrasts = await page.evaluate((colour) => {
        document.documentElement.style.setProperty("--arp-accent", colour);
        const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
        const context = canvas.getContext("2d", { willReadFrequently: true }) as CanvasRenderingContext2D;
        const luminance = (value: string) => {
          context.fillStyle = value;
          context.fillRect(0, 0, 1, 1);
          const [r, g, b] = [...context.getImageData(0, 0, 1, 1).data]
            .slice(0, 3)
            .map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4)) as [
            number,
            number,
            number,
          ];
          return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const button = document.querySelector(".arp-button:not(.arp-soft, .arp-danger)") as HTMLElement;
        button.style.transition = "none";
        const [one, other] = [
          luminance(getComputedStyle(button).color),
          luminance(getComputedStyle(button).backgroundColor),
        ];
        return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
      }, accent);
      expect(contrasts).toBeGreaterThanOrEqual(4.5);
      await page.context().close();
    },
  );

  test("W71 every text of ours comes from the strings of the language", async () => {
    const { page } = await host.open();
    const found = await page.evaluate(() => {
      const { gallery } = globalThis as unknown as {
        gallery: {
          createContext(given: object): object;
          render(template: unknown, place: Element): void;
          renderComponent(component: unknown, context: object): unknown;
          SAMPLES: { name: string; component: unknown }[];
        };
      };
      const t = Object.assign((key: string) => `⟦${key}⟧`, {
        locale: "en",
        direction: "ltr",
        number: String,
        date: String,
      });
      const context = gallery.createContext({ t });
      const place = document.createElement("div");
      document.body.append(place);
      const types = new Set(["status-card", "progress", "confirm", "text-input", "choices", "image"]);
      for (const { component } of gallery.SAMPLES) {
        if (!types.has((component as { type: string }).type)) continue;
        const one = document.createElement("div");
        place.append(one);
        const blank = JSON.parse(JSON.stringify(component), (key, value: unknown) =>
          [
            "title",
            "message",
            "label",
            "content",
            "name",
            "detail",
            "description",
            "caption",
            "alt",
            "confirm_label",
            "deny_label",
            "submit_label",
            "placeholder",
            "icon",
            "answer",
          ].includes(key) && typeof value === "string"
            ? ""
            : value,
        ) as object;
        gallery.render(gallery.renderComponent(blank, context), one);
      }
      return new Promise<string[]>((resolve) =>
        setTimeout(() => {
          const walker = document.createTreeWalker(place, NodeFilter.SHOW_TEXT);
          const words: string[] = [];
          while (walker.nextNode()) words.push((walker.currentNode as Text).data.replace(/⟦\w+⟧/g, "").trim());
          resolve(words.filter((word) => /\p{L}{3,}/u.test(word)));
        }, 300),
      );
    });
    expect(
      found.filter(
        (word) => !["date", "precipitation", "wind", "weather", "Sun", "rain", "Fog", "rainy-days"].includes(word),
      ),
    ).toEqual([]);
    await page.context().close();
  });

  test("W72 code runs left to right on every page, and prose in the direction of its text", async () => {
    const { page } = await host.open("only=markdown&locale=ar");
    const directions = await page.evaluate(() =>
      ["pre", "p", ".arp-blocks code", "ul"].map(
        (one) => getComputedStyle(document.querySelector(one) as Element).direction,
      ),
    );
    expect(directions).toEqual(["ltr", "ltr", "ltr", "ltr"]);
    await page.context().close();
  });

  test("W74 in print everything is visible, and there are no controls", async () => {
    const { page } = await host.open();
    await page.emulateMedia({ media: "print" });
    const [tools, rows] = await page.evaluate(() => {
      dispatchEvent(new Event("beforeprint"));
      const tools = [...document.querySelectorAll(".arp-icon-button, .arp-actions")].filter(
        (one) => one.getClientRects().length > 0,
      ).length;
      return [tools, document.querySelectorAll("[data-name='table long'] tbody tr").length];
    });
    expect([tools, rows]).toEqual([0, 10_000]);
    await page.context().close();
  });

  test("W75 no host rule for element names changes any property of any component", { timeout: 120_000 }, async () => {
    const { page } = await host.open("", { reducedMotion: "reduce" });
    await page.waitForSelector(".arp-k-keyword");
    await page.waitForSelector("math");
    await page.evaluate(steady);
    await page.evaluate(waitUntilDrawn);
    const before = await page.evaluate(looks);
    const plain = await page.evaluate(outside);
    await page.evaluate(hostile);
    const after = await page.evaluate(looks);
    expect(before.length).toBeGreaterThan(1000);
    expect(differing(before, after)).toEqual([]);
    // The same rules do change an element of the host.
    expect(await page.evaluate(outside)).not.toBe(plain);
    await page.context().close();
  });

  test("W75 host rules for our classes and for the theme properties apply", async () => {
    const { page } = await host.open("only=confirm");
    const shown = await page.evaluate(() => {
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(
        ".sample .arp-button { border-radius: 3px; letter-spacing: 1px } .sample .arp-card { text-indent: 7px } .sample { --arp-panel: rgb(1, 2, 3) }",
      );
      document.adoptedStyleSheets = [sheet, ...document.adoptedStyleSheets];
      const at = (name: string) => getComputedStyle(document.querySelector(name) as Element);
      return [
        at(".arp-button").borderRadius,
        at(".arp-button").letterSpacing,
        at(".arp-card").textIndent,
        at(".arp-card").backgroundColor,
      ];
    });
    expect(shown).toEqual(["3px", "1px", "7px", "rgb(1, 2, 3)"]);
    await page.context().close();
  });

  test("W75 a component that the host draws is styled by the host's rules", async () => {
    const { page } = await host.open("only=confirm");
    const shown = await page.evaluate(() => {
      const { gallery } = globalThis as unknown as {
        gallery: {
          createContext(given: object): object;
          render(template: unknown, place: Element): void;
          renderComponent(component: unknown, context: object): unknown;
        };
      };
      const registry = {
        has: () => true,
        get: () => () => Object.assign(document.createElement("p"), { id: "own" }),
        list: () => ["x-own"],
      };
      gallery.render(
        gallery.renderComponent({ id: "o", type: "x-own", props: {} }, gallery.createContext({ registry })),
        document.body,
      );
      const sheet = new CSSStyleSheet();
      sheet.replaceSync("p { margin: 31px; text-transform: uppercase }");
      document.adoptedStyleSheets = [sheet, ...document.adoptedStyleSheets];
      return new Promise((resolve) =>
        setTimeout(() => {
          const { marginTop, textTransform } = getComputedStyle(document.getElementById("own") as Element);
          resolve([marginTop, textTransform]);
        }),
      );
    });
    expect(shown).toEqual(["31px", "uppercase"]);
    await page.context().close();
  });

  test("W75 hostile styles of the host do not break our elements, and our styles change nothing outside", async () => {
    const { page } = await host.open("only=confirm");
    const [display, outside] = await page.evaluate(() => {
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(
        "* { all: revert } @layer late { button { display: none } } button { display: none; color: transparent } p, h3 { margin: 5em; color: transparent }",
      );
      const before = document.createElement("button");
      document.body.append(before);
      const plain = JSON.stringify(
        [...getComputedStyle(before)].map((name) => getComputedStyle(before).getPropertyValue(name)),
      );
      const kept = [...document.adoptedStyleSheets];
      document.adoptedStyleSheets = [];
      const bare = JSON.stringify(
        [...getComputedStyle(before)].map((name) => getComputedStyle(before).getPropertyValue(name)),
      );
      document.adoptedStyleSheets = [sheet, ...kept];
      const button = document.querySelector(".arp-button") as Element;
      return [getComputedStyle(button).display, plain === bare];
    });
    expect(display).toBe("flex");
    expect(outside).toBe(true);
    await page.context().close();
  });
});
