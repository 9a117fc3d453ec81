/** The core's cells as React state. */

import type { Cell } from "@agent-rendering/core";
import { useEffect, useLayoutEffect, useRef, useSyncExternalStore, type MutableRefObject } from "react";
import { fixed } from "../../bindings/src/cells.js";

/**
 * The value of a cell; the component is drawn again when it changes.
 *
 * @param onServer What is drawn on the server, and at first over what came from it.
 */
export function useCell<T>(cell: Cell<T>, onServer: T): T {
  return useSyncExternalStore(cell.subscribe, cell.get, () => onServer);
}

/** Whether this is drawn in a browser and not over what the server sent: then elements can be. */
export function useBrowser(): boolean {
  return useCell(HERE, false);
}

/** Holds the newest value for what runs later than the drawing that brought it. */
export function useLatest<T>(value: T): MutableRefObject<T> {
  const latest = useRef(value);
  useBrowserLayoutEffect(() => {
    latest.current = value;
  });
  return latest;
}

/** `useLayoutEffect`, which React 18 complains of on the server. */
export const useBrowserLayoutEffect = typeof document === "undefined" ? useEffect : useLayoutEffect;

const HERE = fixed(true);
