/** Settings of the page, stored in the browser and shared by its tabs. */

export type Theme = "light" | "dark" | "system";

export interface Settings {
  readonly theme: Theme;
  /** BCP 47 tag; `null` follows the browser. */
  readonly locale: string | null;
  /** Whether the list of chats is shown on wide screens. */
  readonly panel: boolean;
  /** Whether shortcuts of single keys work outside of text fields. */
  readonly singleKeys: boolean;
}

export const SETTINGS_KEY = "arp.settings";

const DEFAULTS: Settings = { theme: "system", locale: null, panel: true, singleKeys: true };

export function readSettings(): Settings {
  try {
    const kept = JSON.parse(localStorage.getItem(SETTINGS_KEY) ?? "{}") as Partial<Settings>;
    return {
      theme: kept.theme === "light" || kept.theme === "dark" ? kept.theme : DEFAULTS.theme,
      locale: typeof kept.locale === "string" ? kept.locale : DEFAULTS.locale,
      panel: kept.panel ?? DEFAULTS.panel,
      singleKeys: kept.singleKeys ?? DEFAULTS.singleKeys,
    };
  } catch {
    return DEFAULTS;
  }
}

export function keepSettings(settings: Settings): void {
  try {
    localStorage.setItem(SETTINGS_KEY, JSON.stringify(settings));
  } catch {
    // The storage is full or forbidden: the settings last until the page is reloaded.
  }
}
