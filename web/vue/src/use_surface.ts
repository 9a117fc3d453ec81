/** Surfaces, popups and overlays, for applications that place them by themselves. */

import type { ArpClient, Component, Wire } from "@agent-rendering/core";
import { toValue, type MaybeRefOrGetter, type ShallowRef } from "vue";
import { fixed } from "../../bindings/src/cells.js";
import { surfaceActions, type SurfaceActions } from "../../bindings/src/surface.js";
import { useCell } from "./cell.js";
import { useArpClient } from "./provide.js";

export interface UseArpSurfaceReturn extends SurfaceActions {
  /** What shows on it, for `<ArpRenderer>`; empty when it is closed. */
  components: Readonly<ShallowRef<readonly Component[]>>;
  /** Title, role and place; `undefined` of a toplevel without a title, and of one that is closed. */
  info: Readonly<ShallowRef<Wire.SurfaceInfo | undefined>>;
}

type Given = MaybeRefOrGetter<ArpClient | null>;

/** The surfaces besides `main` on which something shows, without popups and overlays. */
export function useArpSurfaceNames(client: Given = useArpClient()): Readonly<ShallowRef<readonly string[]>> {
  return useCell(() => toValue(client)?.store.surfaceNames ?? NO_NAMES);
}

/** The popups and overlays on which something shows; there are some only for a client with the feature `overlays`. */
export function useArpPopupNames(client: Given = useArpClient()): Readonly<ShallowRef<readonly string[]>> {
  return useCell(() => toValue(client)?.store.popupNames ?? NO_NAMES);
}

/** One surface, popup or overlay; other values only when something on it changes. */
export function useArpSurface(name: MaybeRefOrGetter<string>, client: Given = useArpClient()): UseArpSurfaceReturn {
  const used = () => toValue(client);
  return {
    components: useCell(() => used()?.store.surface(toValue(name)) ?? NO_COMPONENTS),
    info: useCell(() => used()?.store.surfaceInfo(toValue(name)) ?? NO_INFO),
    ...surfaceActions(used, () => toValue(name)),
  };
}

const NO_NAMES = fixed<readonly string[]>([]);
const NO_COMPONENTS = fixed<readonly Component[]>([]);
const NO_INFO = fixed<Wire.SurfaceInfo | undefined>(undefined);
