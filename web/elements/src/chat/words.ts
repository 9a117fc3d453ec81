/** The language of a chat: its words are loaded, and until then English stands. */

import { EN, loadStrings, translator, type Strings, type Translator } from "@agent-rendering/core/strings";

/** The translator for a locale; asks the browser's languages if it is `null`. */
export async function wordsFor(locale: string | null, own: Partial<Strings> | null): Promise<Translator> {
  const wanted = locale === null ? [...navigator.languages] : [locale];
  const [tag, strings] = await loadStrings(wanted);
  return translator(tag, { ...strings, ...own });
}

/** What to show at once: English, or the host's words. */
export function wordsNow(locale: string | null, own: Partial<Strings> | null): Translator {
  const tag = locale ?? (typeof navigator === "undefined" ? "en" : navigator.language);
  const isEnglish = tag.toLowerCase().startsWith("en");
  return translator(isEnglish ? tag : "en", { ...EN, ...own });
}
