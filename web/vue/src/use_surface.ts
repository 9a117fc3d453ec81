/** Surfaces, popups and overlays, for applications that place them themselves. */

import type { ArpClient, Component, Wire } from "@agent-rendering/core";
import { toValue, type MaybeRefOrGetter, type ShallowRef } from "vue";
import { fixed } from "../../bindings/src/cells.js";
import { surfaceActions, type SurfaceActions } from "../../bindings/src/surface.js";
import { useCell } from "./cell.js";
import { useArpClient } from "./provide.js";

export interface UseArpSurfaceReturn extends SurfaceActions {
  /** Components of the surface, for `<ArpRenderer>`; empty when it is closed. */
  components: Readonly<ShallowRef<readonly Component[]>>;
  /** Title, role and position; `undefined` if the surface has no description or is closed. */
  info: Readonly<ShallowRef<Wire.SurfaceInfo | undefined>>;
}

type Given = MaybeRefOrGetter<ArpClient | null>;

/** Return the names of the non-empty surfaces besides `main`, without popups and overlays. */
export function useArpSurfaceNames(client: Given = useArpClient()): Readonly<ShallowRef<readonly string[]>> {
  return useCell(() => toValue(client)?.store.surfaceNames ?? NO_NAMES);
}

/** Return the names of the non-empty popups and overlays; the client needs the feature `overlays`. */
export function useArpPopupNames(client: Given = useArpClient()): Readonly<ShallowRef<readonly string[]>> {
  return useCell(() => toValue(client)?.store.popupNames ?? NO_NAMES);
}

/** Return one surface, popup or overlay. The values change only when something on it changes. */
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
