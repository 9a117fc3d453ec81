/** What is drawn outside of a whole chat needs besides its data: words, theme, where answers go. */

import { translator } from "@agent-rendering/core/strings";
import type { ArpContext } from "@agent-rendering/elements/components";
import { computed, onMounted, onScopeDispose, ref, shallowRef, watch, type ComputedRef } from "vue";
import {
  elementContext,
  ENGLISH,
  loadWords,
  watchDark,
  type ElementContextOptions,
  type Words,
} from "../../bindings/src/element_context.js";

/** A context for elements; the same object until something in it changes. */
export function useElementContext(given: () => ElementContextOptions): ComputedRef<ArpContext> {
  const table = shallowRef<Words>(ENGLISH);
  const isDark = ref(false);
  const load = async () => {
    const { locale } = given();
    const found = await loadWords(locale);
    if (given().locale === locale) table.value = found;
  };
  onMounted(() => {
    stop = watchDark((now) => (isDark.value = now));
    void load();
    watch(() => given().locale, load);
  });
  let stop = () => undefined as void;
  onScopeDispose(() => stop());
  const t = computed(() => translator(table.value[0], { ...table.value[1], ...given().strings }));
  return computed(() => elementContext(given(), t.value, isDark.value));
}
