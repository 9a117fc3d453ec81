/** The language and the colours of a chat. Words are loaded; until then it shows English, or the host's own texts. */

import { loadStrings, translator, type Strings, type Translator } from "@agent-rendering/core/strings";

/** The chat, whose properties say how it looks. */
export interface AppearanceHost extends HTMLElement {
  readonly locale: string | undefined;
  readonly strings: Partial<Strings> | undefined;
  readonly theme: "light" | "dark" | "system" | undefined;
  readonly accent: string | undefined;
}

export class Appearance {
  words: Translator;
  #isDark = false;
  readonly #host: AppearanceHost;
  readonly #changed: () => void;

  /** @param changed Called when the words or the reader's preferred theme have changed. */
  constructor(host: AppearanceHost, changed: () => void) {
    this.#host = host;
    this.#changed = changed;
    this.words = this.#englishWords();
  }

  /** The theme of the host, or else the one that the reader prefers. */
  get theme(): "light" | "dark" {
    const { theme } = this.#host;
    return theme === "light" || theme === "dark" ? theme : this.#isDark ? "dark" : "light";
  }

  /** Follow the theme that the reader prefers until the signal. */
  watchTheme(signal: AbortSignal): void {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const update = () => {
      if (this.#isDark === dark.matches) return;
      this.#isDark = dark.matches;
      this.#changed();
    };
    update();
    dark.addEventListener("change", update, { signal });
  }

  /** Load the words of the host's language, by default the browser's. */
  async loadWords(): Promise<void> {
    const { locale, strings } = this.#host;
    this.#setWords(this.#englishWords());
    const [tag, loaded] = await loadStrings(locale == null ? navigator.languages : [locale]);
    // The host may have asked for another language meanwhile.
    if (this.#host.locale === locale) this.#setWords(translator(tag, { ...loaded, ...strings }));
  }

  /** Return English with the host's own texts, which is there at once. */
  #englishWords(): Translator {
    const tag = this.#host.locale ?? navigator.language;
    return translator(/^en/i.test(tag) ? tag : "en", this.#host.strings ?? {});
  }

  #setWords(words: Translator): void {
    this.words = words;
    this.#changed();
  }

  /** Set the attributes and styles of the host that depend on its appearance, where they differ. */
  apply(): void {
    const host = this.#host;
    const { direction, locale } = this.words;
    // Setting `dir` makes the browser compute the style of everything below it again, also if it is the same.
    if (host.dir !== direction) host.dir = direction;
    if (host.lang !== locale) host.lang = locale;
    if (host.theme === "light" || host.theme === "dark") host.dataset.theme = host.theme;
    else delete host.dataset.theme;
    if (host.accent) host.style.setProperty("--arp-accent", host.accent);
    else host.style.removeProperty("--arp-accent");
  }
}
