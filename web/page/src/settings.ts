/** What the reader has chosen for this page, kept in the browser and the same in all its tabs. */

export type Theme = "light" | "dark" | "system";

export interface Settings {
  readonly theme: Theme;
  /** A BCP 47 tag; `null` follows the browser. */
  readonly locale: string | null;
  /** Whether the list of chats shows, where there is room for it. */
  readonly panel: boolean;
  /** Whether single keys do something outside of fields. */
  readonly singleKeys: boolean;
}

export const SETTINGS_KEY = "arp.settings";

const FIRST: Settings = { theme: "system", locale: null, panel: true, singleKeys: true };

export function readSettings(): Settings {
  try {
    const kept = JSON.parse(localStorage.getItem(SETTINGS_KEY) ?? "{}") as Partial<Settings>;
    return {
      theme: kept.theme === "light" || kept.theme === "dark" ? kept.theme : FIRST.theme,
      locale: typeof kept.locale === "string" ? kept.locale : FIRST.locale,
      panel: kept.panel ?? FIRST.panel,
      singleKeys: kept.singleKeys ?? FIRST.singleKeys,
    };
  } catch {
    return FIRST;
  }
}

export function keepSettings(settings: Settings): void {
  try {
    localStorage.setItem(SETTINGS_KEY, JSON.stringify(settings));
  } catch {
    // Full or forbidden: they last until the reload.
  }
}
