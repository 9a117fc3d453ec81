/** The core's cells as Vue's refs. */

import type { Cell } from "@agent-rendering/core";
import { onScopeDispose, shallowRef, toValue, watch, type MaybeRefOrGetter, type ShallowRef } from "vue";

/** Return the value of a cell as a ref, which follows the cell until the scope is disposed. */
export function useCell<T>(cell: MaybeRefOrGetter<Cell<T>>): Readonly<ShallowRef<T>> {
  const value = shallowRef(toValue(cell).get());
  let stop = () => undefined as void;
  const follow = (next: Cell<T>) => {
    stop();
    value.value = next.get();
    stop = next.subscribe(() => {
      value.value = next.get();
    });
  };
  watch(() => toValue(cell), follow, { flush: "sync", immediate: true });
  onScopeDispose(() => stop());
  return value;
}
