/** The core's cells as React state. */

import type { Cell } from "@agent-rendering/core";
import { useEffect, useLayoutEffect, useRef, useSyncExternalStore, type MutableRefObject } from "react";
import { fixed } from "../../bindings/src/cells.js";

/**
 * Return the value of a cell; the component is rendered again when it changes.
 *
 * @param onServer Value on the server and during hydration.
 */
export function useCell<T>(cell: Cell<T>, onServer: T): T {
  return useSyncExternalStore(cell.subscribe, cell.get, () => onServer);
}

/** Return whether elements can be drawn: in a browser, after hydration. */
export function useBrowser(): boolean {
  return useCell(HERE, false);
}

/** Return a ref with the newest value, for code that runs after the render. */
export function useLatest<T>(value: T): MutableRefObject<T> {
  const latest = useRef(value);
  useBrowserLayoutEffect(() => {
    latest.current = value;
  });
  return latest;
}

/** `useLayoutEffect` in a browser; on the server React 18 warns about it. */
export const useBrowserLayoutEffect = typeof document === "undefined" ? useEffect : useLayoutEffect;

const HERE = fixed(true);
