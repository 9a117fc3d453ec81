/** Language and colours of a chat. Until the words are loaded, the chat shows English, or the texts of the host. */

import { loadStrings, translator, type Strings, type Translator } from "@agent-rendering/core/strings";

/** The chat, with the properties that determine its appearance. */
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

  /** The theme of the host; for `system`, the theme that the reader prefers. */
  get theme(): "light" | "dark" {
    const { theme } = this.#host;
    return theme === "light" || theme === "dark" ? theme : this.#isDark ? "dark" : "light";
  }

  /** Follow the theme that the reader prefers, until the signal aborts. */
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
    // The host may have set another language meanwhile, whose words must not be replaced by these.
    if (this.#host.locale === locale) this.#setWords(translator(tag, { ...loaded, ...strings }));
  }

  /** Return English words with the host's own texts. They need no loading. */
  #englishWords(): Translator {
    // Node 20 has no `navigator`, and a DOM shim may not add one. Creating a chat must not fail there.
    const tag = this.#host.locale ?? globalThis.navigator?.language ?? "en";
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
    // Setting `dir`, even to the same value, makes the browser recompute the style of everything below it.
    if (host.dir !== direction) host.dir = direction;
    if (host.lang !== locale) host.lang = locale;
    if (host.theme === "light" || host.theme === "dark") host.dataset.theme = host.theme;
    else delete host.dataset.theme;
    if (host.accent) host.style.setProperty("--arp-accent", host.accent);
    else host.style.removeProperty("--arp-accent");
  }
}
