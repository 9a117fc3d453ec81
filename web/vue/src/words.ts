/** What is drawn outside of a whole chat needs besides its data: words, theme, where answers go. */

import type { ArpClient } from "@agent-rendering/core";
import { loadStrings, translator, type Strings } from "@agent-rendering/core/strings";
import { createContext, type ArpContext, type Components } from "@agent-rendering/elements/components";
import { computed, onMounted, onScopeDispose, ref, shallowRef, watch, type ComputedRef } from "vue";

export interface Surroundings {
  client: ArpClient | null;
  registry: Components;
  locale?: string | undefined;
  strings?: Partial<Strings> | undefined;
  theme?: "light" | "dark" | "system" | "auto" | undefined;
  answer?: ArpContext["answer"] | undefined;
}

/** A context for elements; the same object until something in it changes. */
export function useElementContext(given: () => Surroundings): ComputedRef<ArpContext> {
  const table = shallowRef<readonly [string, Partial<Strings>]>(["en", {}]);
  const isDark = ref(false);
  const load = async () => {
    const { locale } = given();
    const found = await loadStrings(locale === undefined ? navigator.languages : [locale]);
    if (given().locale === locale) table.value = found;
  };
  onMounted(() => {
    const query = matchMedia("(prefers-color-scheme: dark)");
    const look = () => (isDark.value = query.matches);
    look();
    query.addEventListener("change", look);
    stop = () => query.removeEventListener("change", look);
    void load();
    watch(() => given().locale, load);
  });
  let stop = () => undefined as void;
  onScopeDispose(() => stop());
  const t = computed(() => translator(table.value[0], { ...table.value[1], ...given().strings }));
  return computed(() => {
    const { client, registry, theme, answer } = given();
    const shown = theme === "light" || theme === "dark" ? theme : isDark.value ? "dark" : "light";
    return createContext({ client, registry, t: t.value, theme: shown, ...(answer && { answer }) });
  });
}
