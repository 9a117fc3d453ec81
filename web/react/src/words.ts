/** What is drawn outside of a whole chat needs besides its data: words, theme, where answers go. */

import { translator, type Strings, type Translator } from "@agent-rendering/core/strings";
import type { ArpContext } from "@agent-rendering/elements/components";
import { useEffect, useMemo, useState } from "react";
import {
  elementContext,
  ENGLISH,
  loadWords,
  watchDark,
  type ElementContextOptions,
  type Words,
} from "../../bindings/src/element_context.js";

/** A context for elements; the same object until something in it changes. */
export function useElementContext({
  client,
  registry,
  locale,
  strings,
  theme,
  answer,
}: ElementContextOptions): ArpContext {
  const t = useTranslator(locale, strings);
  const isDark = useDark();
  return useMemo(
    () => elementContext({ client, registry, theme, answer }, t, isDark),
    [client, registry, theme, answer, t, isDark],
  );
}

/** English until another language has been loaded. */
function useTranslator(locale: string | undefined, strings: Partial<Strings> | undefined): Translator {
  const [table, setTable] = useState<Words>(ENGLISH);
  useEffect(() => {
    let isWanted = true;
    void loadWords(locale).then((found) => {
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
  useEffect(() => watchDark(setDark), []);
  return isDark;
}
