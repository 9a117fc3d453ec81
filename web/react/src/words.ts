/** What is drawn outside of a whole chat needs besides its data: words, theme, where answers go. */

import type { ArpClient } from "@agent-rendering/core";
import { loadStrings, translator, type Strings, type Translator } from "@agent-rendering/core/strings";
import { createContext, type ArpContext, type Components } from "@agent-rendering/elements/components";
import { useEffect, useMemo, useState } from "react";

export interface Surroundings {
  client: ArpClient | null;
  registry: Components;
  locale?: string | undefined;
  strings?: Partial<Strings> | undefined;
  theme?: "light" | "dark" | "system" | "auto" | undefined;
  answer?: ArpContext["answer"] | undefined;
}

/** A context for elements; the same object until something in it changes. */
export function useElementContext({ client, registry, locale, strings, theme, answer }: Surroundings): ArpContext {
  const t = useTranslator(locale, strings);
  const isDark = useDark();
  const shown = theme === "light" || theme === "dark" ? theme : isDark ? "dark" : "light";
  return useMemo(
    () => createContext({ client, registry, t, theme: shown, ...(answer && { answer }) }),
    [client, registry, t, shown, answer],
  );
}

/** English until another language has been loaded. */
function useTranslator(locale: string | undefined, strings: Partial<Strings> | undefined): Translator {
  const [table, setTable] = useState<readonly [string, Partial<Strings>]>(["en", {}]);
  useEffect(() => {
    let isWanted = true;
    void loadStrings(locale === undefined ? navigator.languages : [locale]).then((found) => {
      if (isWanted) setTable(found);
    });
    return () => {
      isWanted = false;
    };
  }, [locale]);
  return useMemo(() => translator(table[0], { ...table[1], ...strings }), [table, strings]);
}

function useDark(): boolean {
  const [isDark, setDark] = useState(false);
  useEffect(() => {
    const query = matchMedia("(prefers-color-scheme: dark)");
    const look = () => setDark(query.matches);
    look();
    query.addEventListener("change", look);
    return () => query.removeEventListener("change", look);
  }, []);
  return isDark;
}
