/** The core's cells as Vue's refs. */

import type { Cell } from "@agent-rendering/core";
import { onScopeDispose, shallowRef, toValue, watch, type MaybeRefOrGetter, type ShallowRef } from "vue";

/** The value of a cell as a ref, for as long as the scope lives. */
export function useCell<T>(cell: MaybeRefOrGetter<Cell<T>>): Readonly<ShallowRef<T>> {
  const value = shallowRef(toValue(cell).get());
  let stop = () => undefined as void;
  const turnTo = (next: Cell<T>) => {
    stop();
    value.value = next.get();
    stop = next.subscribe(() => {
      value.value = next.get();
    });
  };
  watch(() => toValue(cell), turnTo, { flush: "sync", immediate: true });
  onScopeDispose(() => stop());
  return value;
}
