/** Context of elements that are drawn outside of a whole chat: texts, theme, and the receiver of answers. */

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

/** Return a context for elements; the same object until something in it changes. */
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

/** Return a translator; it is English until another language is loaded. */
function useTranslator(locale: string | undefined, strings: Partial<Strings> | undefined): Translator {
  const [table, setTable] = useState<Words>(ENGLISH);
  useEffect(() => {
    // A slow language must not replace a newer choice that has loaded first.
    let isCurrent = true;
    void loadWords(locale).then((found) => {
      if (isCurrent) setTable(found);
    });
    return () => {
      isCurrent = false;
    };
  }, [locale]);
  return useMemo(() => translator(table[0], { ...table[1], ...strings }), [table, strings]);
}

function useDark(): boolean {
  const [isDark, setDark] = useState(false);
  useEffect(() => watchDark(setDark), []);
  return isDark;
}
