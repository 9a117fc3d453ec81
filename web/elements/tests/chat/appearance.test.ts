/** Language and colours of a chat. */

import type { Strings } from "@agent-rendering/core/strings";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ArpChat } from "../../src/chat/chat.js";
import { Appearance, type AppearanceHost } from "../../src/chat/appearance.js";

let prefersDark: boolean;
let report: () => void;
let changed: ReturnType<typeof vi.fn<() => void>>;

interface Look {
  locale?: string;
  strings?: Partial<Strings>;
  theme?: "light" | "dark" | "system";
  accent?: string;
}

function appearanceOf(look: Look): [Appearance, AppearanceHost & Look] {
  const host = Object.assign(document.createElement("div"), look) as unknown as AppearanceHost & Look;
  return [new Appearance(host, changed), host];
}

beforeEach(() => {
  prefersDark = false;
  changed = vi.fn();
  vi.stubGlobal("matchMedia", () => ({
    get matches() {
      return prefersDark;
    },
    addEventListener: (_type: string, listener: () => void, { signal }: { signal: AbortSignal }) =>
      (report = () => signal.aborted || listener()),
  }));
});

afterEach(() => vi.unstubAllGlobals());

test("a chat without a theme follows the reader's until the signal aborts, and reports each change once", () => {
  const [appearance, host] = appearanceOf({});
  const leaving = new AbortController();
  appearance.watchTheme(leaving.signal);
  expect([appearance.theme, changed.mock.calls.length]).toEqual(["light", 0]);
  prefersDark = true;
  report();
  report();
  expect([appearance.theme, changed.mock.calls.length]).toEqual(["dark", 1]);
  host.theme = "light";
  expect(appearance.theme).toBe("light");
  host.theme = "system";
  leaving.abort();
  prefersDark = false;
  report();
  expect([appearance.theme, changed.mock.calls.length]).toEqual(["dark", 1]);
});

test("English is shown until another language is loaded, and the host's own texts from the start", async () => {
  const [appearance] = appearanceOf({ locale: "de", strings: { stop: "Stoppen" } });
  const loaded = appearance.loadWords();
  expect([appearance.words.locale, appearance.words("send"), appearance.words("stop")]).toEqual([
    "en",
    "Send",
    "Stoppen",
  ]);
  await loaded;
  expect([appearance.words.locale, appearance.words("send"), appearance.words("stop")]).toEqual([
    "de",
    "Senden",
    "Stoppen",
  ]);
  expect(changed).toHaveBeenCalledTimes(2);
});

test("a chat can be created without a `navigator`, as on Node 20 with a DOM shim, and is English", () => {
  vi.stubGlobal("navigator", undefined);
  expect(new ArpChat().context.t.locale).toBe("en");
  Reflect.deleteProperty(globalThis, "navigator");
  expect("navigator" in globalThis).toBe(false);
  expect(new ArpChat().context.t.locale).toBe("en");
});

test("the language that was set last is shown, whichever is loaded first", async () => {
  const [appearance, host] = appearanceOf({ locale: "de" });
  const german = appearance.loadWords();
  host.locale = "en-GB";
  await Promise.all([appearance.loadWords(), german]);
  expect(appearance.words.locale).toBe("en-GB");
});

test("an unchanged direction is not set again, and an accent can be removed", () => {
  const [appearance, host] = appearanceOf({ accent: "teal", theme: "dark" });
  appearance.apply();
  expect([host.dir, host.lang, host.dataset.theme, host.style.getPropertyValue("--arp-accent")]).toEqual([
    "ltr",
    appearance.words.locale,
    "dark",
    "teal",
  ]);
  const set = vi.spyOn(host, "dir", "set");
  (host as Look).accent = "";
  host.theme = "system";
  appearance.apply();
  expect([host.dataset.theme, host.style.getPropertyValue("--arp-accent")]).toEqual([undefined, ""]);
  expect(set).not.toHaveBeenCalled();
});
