/**
 * Texts of the user interface, and their translation. Separate entry (`@agent-rendering/core/strings`); languages
 * other than English are loaded on demand.
 */

import { EN } from "./locales/en.js";
import type { Plural, StringKey, Strings } from "./locales/types.js";

export { EN };
export type { Plural, Problems, StringKey, Strings } from "./locales/types.js";

/** Values for the placeholders of a text. */
export type Values = { readonly [name: string]: string | number };

/** Returns texts in one language. */
export interface Translator {
  (key: StringKey, values?: Values): string;
  /** A BCP 47 tag. */
  readonly locale: string;
  /** Whether the language is written from right to left. */
  readonly direction: "ltr" | "rtl";
  /** Format a number for the locale. */
  number(value: number, options?: Intl.NumberFormatOptions): string;
  /** Format a date and time for the locale; an invalid date gives an empty text. */
  date(value: Date | number | string, options?: Intl.DateTimeFormatOptions): string;
  /** Return the explanation of a protocol error by its code; `null` if there is none: then show the server's text. */
  problem(code: number): string | null;
}

/** Functions that load the table of a language other than English. */
export const LOCALES: { readonly [language: string]: () => Promise<Strings> } = {
  ar: async () => (await import("./locales/ar.js")).AR,
  de: async () => (await import("./locales/de.js")).DE,
  es: async () => (await import("./locales/es.js")).ES,
  fr: async () => (await import("./locales/fr.js")).FR,
  ja: async () => (await import("./locales/ja.js")).JA,
  zh: async () => (await import("./locales/zh.js")).ZH,
};

const RIGHT_TO_LEFT = new Set(["ar", "dv", "fa", "he", "ku", "ps", "sd", "ug", "ur", "yi"]);

/** Return tag and table of the first language that is available; English if none is. */
export async function loadStrings(wanted: readonly string[]): Promise<[locale: string, strings: Strings]> {
  for (const tag of wanted) {
    const language = languageOf(tag);
    if (language === "en") return [tag, EN];
    const load = Object.hasOwn(LOCALES, language) ? LOCALES[language] : undefined;
    if (load) return [tag, await load()];
  }
  return ["en", EN];
}

/**
 * Create a translator.
 *
 * @param locale BCP 47 tag for numbers, dates and plurals; an invalid tag counts as English.
 * @param strings Texts of that language; a missing text is taken from English.
 */
export function translator(locale = "en", strings: Partial<Strings> = EN): Translator {
  const tag = knownTag(locale);
  // Created on first use and kept: creating an `Intl` object takes as long as drawing the whole page.
  const pluralOf = once(() => new Intl.PluralRules(tag));
  const numberOf = once((options?: Intl.NumberFormatOptions) => new Intl.NumberFormat(tag, options));
  const dateOf = once((options?: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat(tag, options));
  const number = (value: number, options?: Intl.NumberFormatOptions) => numberOf(options).format(value);
  const filled = (key: StringKey, values: Values = {}): string => {
    const found: string | Plural = strings[key] ?? EN[key];
    const text = typeof found === "string" ? found : (found[pluralOf().select(Number(values.count))] ?? found.other);
    return text.replace(/\{(\w+)\}/g, (whole: string, name: string) => {
      const value = Object.hasOwn(values, name) ? values[name] : undefined;
      return typeof value === "number" ? number(value) : (value ?? whole);
    });
  };
  return Object.assign(filled, {
    locale: tag,
    problem: (code: number) => strings[`error${code}`] ?? null,
    direction: RIGHT_TO_LEFT.has(languageOf(tag)) ? ("rtl" as const) : ("ltr" as const),
    number,
    date: (value: Date | number | string, options: Intl.DateTimeFormatOptions = DATE_AND_TIME) => {
      const date = new Date(value);
      return Number.isNaN(date.getTime()) ? "" : dateOf(options).format(date);
    },
  });
}

/** Return a function that calls `make` once for each set of options, and then returns the same object. */
function once<Options, Made>(make: (options?: Options) => Made): (options?: Options) => Made {
  const made = new Map<string, Made>();
  return (options) => {
    const key = JSON.stringify(options) ?? "";
    let one = made.get(key);
    if (one === undefined) made.set(key, (one = make(options)));
    return one;
  };
}

const DATE_AND_TIME: Intl.DateTimeFormatOptions = { dateStyle: "medium", timeStyle: "short" };

/** Return English texts with accents and brackets, so that tests find texts that are not translated. */
export function pseudoStrings(): Strings {
  const altered = (text: string) =>
    `⟦${text.replace(/\{\w+\}|[aeiou]/g, (found) => (found.length > 1 ? found : `${found}\u0301${found}`))}⟧`;
  const entries = Object.entries(EN).map(([key, text]) => [
    key,
    typeof text === "string" ? altered(text) : { one: altered(text.one), other: altered(text.other) },
  ]);
  return Object.fromEntries(entries) as Strings;
}

function languageOf(tag: string): string {
  return (tag.split("-")[0] as string).toLowerCase();
}

function knownTag(locale: string): string {
  try {
    return Intl.getCanonicalLocales(locale)[0] ?? "en";
  } catch {
    return "en";
  }
}
