/** Context of elements that are drawn outside of a whole chat: texts, theme, and the receiver of answers. */

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

/** Return a context for elements; the same object until something in it changes. */
export function useElementContext(given: () => ElementContextOptions): ComputedRef<ArpContext> {
  const table = shallowRef<Words>(ENGLISH);
  const isDark = ref(false);
  const load = async () => {
    const { locale } = given();
    const found = await loadWords(locale);
    // A slow language must not replace a newer choice that has loaded first.
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
