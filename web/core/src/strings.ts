/**
 * The words that the packages above show, and how they are filled in. An entry of its own
 * (`@agent-rendering/core/strings`); other languages than English are loaded when they are wanted.
 */

import { EN } from "./locales/en.js";
import type { Plural, StringKey, Strings } from "./locales/types.js";

export { EN };
export type { Plural, Problems, StringKey, Strings } from "./locales/types.js";

/** What fills in a text. */
export type Values = { readonly [name: string]: string | number };

/** Returns texts in one language. */
export interface Translator {
  (key: StringKey, values?: Values): string;
  /** A BCP 47 tag. */
  readonly locale: string;
  /** Whether the language is written from right to left. */
  readonly direction: "ltr" | "rtl";
  /** A number as people write it there. */
  number(value: number, options?: Intl.NumberFormatOptions): string;
  /** A date and time as people write them there. */
  date(value: Date | number | string, options?: Intl.DateTimeFormatOptions): string;
  /** What an error of the protocol means, by its code; `null` where there are only the server's words. */
  problem(code: number): string | null;
}

/** The languages besides English; each returns its table. */
export const LOCALES: { readonly [language: string]: () => Promise<Strings> } = {
  ar: async () => (await import("./locales/ar.js")).AR,
  de: async () => (await import("./locales/de.js")).DE,
  es: async () => (await import("./locales/es.js")).ES,
  fr: async () => (await import("./locales/fr.js")).FR,
  ja: async () => (await import("./locales/ja.js")).JA,
  zh: async () => (await import("./locales/zh.js")).ZH,
};

const RIGHT_TO_LEFT = new Set(["ar", "dv", "fa", "he", "ku", "ps", "sd", "ug", "ur", "yi"]);

/** The best of several wanted languages that there is: its table and its tag; English at last. */
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
 * Makes what gives texts.
 *
 * @param locale A BCP 47 tag, for numbers, dates and plurals; one that is none counts as English.
 * @param strings The texts of that language; English where one is missing.
 */
export function translator(locale = "en", strings: Partial<Strings> = EN): Translator {
  const tag = knownTag(locale);
  // Made when they are wanted, and once: the first of each kind costs as much as drawing the whole page.
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

/** Makes something of options once, and returns the same for the same options. */
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

/** English in other letters and longer, so that tests see what is not translated. */
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
