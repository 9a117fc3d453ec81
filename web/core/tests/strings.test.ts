import { describe, expect, test } from "vitest";
import * as CODES from "../src/protocol/generated/codes.js";
import { EN, loadStrings, LOCALES, pseudoStrings, translator, type Plural, type Strings } from "../src/strings.js";

test("values are filled in, with numbers formatted for the language", () => {
  const de = translator("de", {});
  expect(de("removeFile", { name: "a.csv" })).toBe("Remove a.csv");
  expect(de("rows", { count: 10_000 })).toBe("10.000 rows");
  expect(translator()("removeFile")).toBe("Remove {name}");
});

test("plurals are chosen by the rules of the language", async () => {
  const [locale, strings] = await loadStrings(["ar-EG"]);
  const t = translator(locale, strings);
  expect([1, 2, 3, 11, 100].map((count) => t("rows", { count }).replace(/^\S+ /, ""))).toEqual([
    "واحد",
    "صفان",
    "صفوف",
    "صفًا",
    "صف",
  ]);
  expect(translator("en")("rows", { count: 1 })).toBe("1 row");
});

test("the first available language is used, English as the last resort", async () => {
  expect((await loadStrings(["xx", "fr-CA", "de"]))[0]).toBe("fr-CA");
  expect(await loadStrings(["en-GB", "de"])).toEqual(["en-GB", EN]);
  expect(await loadStrings(["constructor", "tlh"])).toEqual(["en", EN]);
});

test("direction follows the language", () => {
  expect([translator("ar").direction, translator("he-IL").direction, translator("ja").direction]).toEqual([
    "rtl",
    "rtl",
    "ltr",
  ]);
});

test("an invalid tag counts as English, and an invalid date gives an empty text", () => {
  const t = translator("not a tag");
  expect([t.locale, t.date("never"), t.number(0.5, { style: "percent" })]).toEqual(["en", "", "50%"]);
  expect(translator("de").date(Date.UTC(2026, 10, 21, 12), { dateStyle: "short", timeZone: "UTC" })).toBe("21.11.26");
});

test("values are never taken from prototypes, nor filled in twice", () => {
  const t = translator("en", { send: "{constructor} {name}" });
  expect(t("send", { name: "{constructor}" })).toBe("{constructor} {constructor}");
});

const isProblem = (key: string) => /^error\d+$/.test(key);
/** Codes that users never see: those of the object dialect, and that of an unknown version. */
const RESERVED = new Set<number>([
  CODES.INVALID_METHOD,
  CODES.INVALID_SERIAL,
  CODES.ROLE_CONFLICT,
  CODES.VERSION_MISMATCH,
  CODES.TRANSFER_DENIED,
]);

describe.each(Object.keys(LOCALES))("%s", (language) => {
  const names = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string);
  const forms = (text: string | Plural) => (typeof text === "string" ? [text] : (Object.values(text) as string[]));

  test("has every text, with the same values in it", async () => {
    const strings = await (LOCALES[language] as () => Promise<Strings>)();
    expect(Object.keys(strings).filter((key) => !isProblem(key))).toEqual(Object.keys(EN));
    for (const [key, text] of Object.entries(EN)) {
      const wanted = new Set(forms(text).flatMap(names));
      for (const form of forms(strings[key as keyof typeof EN])) {
        expect(form.trim(), key).not.toBe("");
        expect([...wanted], key).toEqual(expect.arrayContaining(names(form)));
        const missing = [...wanted].filter((name) => name !== "count" && !names(form).includes(name));
        expect(missing, key).toEqual([]);
      }
    }
  });

  test("explains every error code that is not reserved", async () => {
    const strings = await (LOCALES[language] as () => Promise<Strings>)();
    const codes = Object.keys(strings)
      .filter(isProblem)
      .map((key) => Number(key.slice("error".length)));
    expect(codes).toEqual(Object.values(CODES).filter((code) => !RESERVED.has(code)));
    const t = translator(language, strings);
    expect([t.problem(17), t.problem(0)]).toEqual([strings.error17, null]);
    expect(t.problem(17)).not.toBe(translator("en").problem(17));
  });

  test("has every plural form of its language", async () => {
    const strings = await (LOCALES[language] as () => Promise<Strings>)();
    const categories = new Intl.PluralRules(language).resolvedOptions().pluralCategories;
    for (const text of Object.values(strings)) {
      if (typeof text !== "object") continue;
      const has = Object.keys(text);
      // The category `many` (millions in French and Spanish) has the same text as `other` here.
      expect(
        categories.filter((one) => one !== "many" || language === "ar").filter((one) => !has.includes(one)),
      ).toEqual([]);
    }
  });
});

test("the pseudo language marks every text and keeps its values", () => {
  const t = translator("en", pseudoStrings());
  expect(t("removeFile", { name: "a.csv" })).toBe("⟦Re\u0301emo\u0301ove\u0301e a.csv⟧");
  expect(t("rows", { count: 2 })).toMatch(/^⟦2 .*⟧$/);
});
