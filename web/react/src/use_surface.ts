/** Surfaces, popups and overlays, for applications that place them themselves. */

import type { ArpClient, Component, Wire } from "@agent-rendering/core";
import { useMemo } from "react";
import { fixed } from "../../bindings/src/cells.js";
import { surfaceActions, type SurfaceActions } from "../../bindings/src/surface.js";
import { useCell } from "./cell.js";
import { useArpClient } from "./context.js";

export interface UseArpSurfaceReturn extends SurfaceActions {
  /** Components of the surface, for `<ArpRenderer>`; empty when it is closed. */
  components: readonly Component[];
  /** Title, role and position; `undefined` if the surface has no description or is closed. */
  info: Wire.SurfaceInfo | undefined;
}

/** Return the names of the non-empty surfaces besides `main`, without popups and overlays. */
export function useArpSurfaceNames(client?: ArpClient | null): readonly string[] {
  const shared = useArpClient();
  return useCell((client === undefined ? shared : client)?.store.surfaceNames ?? NO_NAMES_CELL, NO_NAMES);
}

/** Return the names of the non-empty popups and overlays; the client needs the feature `overlays`. */
export function useArpPopupNames(client?: ArpClient | null): readonly string[] {
  const shared = useArpClient();
  return useCell((client === undefined ? shared : client)?.store.popupNames ?? NO_NAMES_CELL, NO_NAMES);
}

/** Return one surface, popup or overlay. The component is rendered again only when something on it changes. */
export function useArpSurface(name: string, client?: ArpClient | null): UseArpSurfaceReturn {
  const shared = useArpClient();
  const used = client === undefined ? shared : client;
  const components = useCell(used?.store.surface(name) ?? NO_COMPONENTS_CELL, NO_COMPONENTS);
  const info = useCell(used?.store.surfaceInfo(name) ?? NO_INFO_CELL, undefined);
  const actions = useMemo(
    () =>
      surfaceActions(
        () => used,
        () => name,
      ),
    [used, name],
  );
  return useMemo(() => ({ components, info, ...actions }), [components, info, actions]);
}

const NO_NAMES: readonly string[] = [];
const NO_NAMES_CELL = fixed(NO_NAMES);
const NO_COMPONENTS: readonly Component[] = [];
const NO_COMPONENTS_CELL = fixed(NO_COMPONENTS);
const NO_INFO_CELL = fixed<Wire.SurfaceInfo | undefined>(undefined);
