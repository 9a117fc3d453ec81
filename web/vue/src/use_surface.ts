/** Surfaces, popups and overlays, for applications that place them by themselves. */

import type { ArpClient, Component, Wire } from "@agent-rendering/core";
import { toValue, type MaybeRefOrGetter, type ShallowRef } from "vue";
import { fixed, useCell } from "./cell.js";
import { useArpClient } from "./provide.js";

export interface UseArpSurfaceReturn {
  /** What shows on it, for `<ArpRenderer>`; empty when it is closed. */
  components: Readonly<ShallowRef<readonly Component[]>>;
  /** Title, role and place; `undefined` of a toplevel without a title, and of one that is closed. */
  info: Readonly<ShallowRef<Wire.SurfaceInfo | undefined>>;
  /** Closes it for every renderer; the agent's `on_close` is called. */
  close: () => void;
  /** Tells the agent that the user turned to it or away from it: its `on_focus` is called. */
  setFocused: (isFocused: boolean) => void;
  /** Tells the agent its size in CSS pixels, and its states: its `on_configure` is called. */
  setSize: (width: number, height: number, states?: readonly string[]) => void;
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
    close: () => void used()?.closeSurface(toValue(name)),
    setFocused: (isFocused) => used()?.tellOfSurface(toValue(name), isFocused ? "focus" : "unfocus"),
    setSize: (width, height, states = ["activated"]) =>
      used()?.tellOfSurface(toValue(name), "resize", {
        width: Math.round(width),
        height: Math.round(height),
        states: [...states],
      }),
  };
}

const NO_NAMES = fixed<readonly string[]>([]);
const NO_COMPONENTS = fixed<readonly Component[]>([]);
const NO_INFO = fixed<Wire.SurfaceInfo | undefined>(undefined);
