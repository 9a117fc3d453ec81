/** Texts and theme of elements that are drawn outside of a whole chat. */

import type { ArpClient } from "@agent-rendering/core";
import { loadStrings, type Strings, type Translator } from "@agent-rendering/core/strings";
import { createContext, type ArpContext, type Components } from "@agent-rendering/elements/components";
import type { Theme } from "./chat.js";

export interface ElementContextOptions {
  client: ArpClient | null;
  registry: Components;
  locale?: string | undefined;
  strings?: Partial<Strings> | undefined;
  theme?: Theme | undefined;
  answer?: ArpContext["answer"] | undefined;
}

/** A language and its texts. */
export type Words = readonly [locale: string, strings: Partial<Strings>];

/** Texts that are used until another language is loaded. */
export const ENGLISH: Words = ["en", {}];

/** Load the texts of a language; `undefined` means the languages of the browser. */
export function loadWords(locale: string | undefined): Promise<Words> {
  return loadStrings(locale === undefined ? navigator.languages : [locale]);
}

/**
 * Report whether the user prefers a dark theme, now and after each change.
 *
 * @returns A function that stops it.
 */
export function watchDark(onChange: (isDark: boolean) => void): () => void {
  const query = matchMedia("(prefers-color-scheme: dark)");
  const report = () => onChange(query.matches);
  report();
  query.addEventListener("change", report);
  return () => query.removeEventListener("change", report);
}

/** Return a context for elements. */
export function elementContext(
  { client, registry, theme, answer }: ElementContextOptions,
  t: Translator,
  isDark: boolean,
): ArpContext {
  const shown = theme === "light" || theme === "dark" ? theme : isDark ? "dark" : "light";
  return createContext({ client, registry, t, theme: shown, ...(answer && { answer }) });
}
