/** What a renderer reports about a surface that it places itself. */

import type { ArpClient } from "@agent-rendering/core";

export interface SurfaceActions {
  /** Closes it for every renderer; the agent's `on_close` is called. */
  close: () => void;
  /** Tells the agent that the user turned to it or away from it: its `on_focus` is called. */
  setFocused: (isFocused: boolean) => void;
  /** Tells the agent its size in CSS pixels, and its states: its `on_configure` is called. */
  setSize: (width: number, height: number, states?: readonly string[]) => void;
}

/** Return the actions of a surface; client and name are read when an action is called. */
export function surfaceActions(client: () => ArpClient | null, name: () => string): SurfaceActions {
  return {
    close: () => void client()?.closeSurface(name()),
    setFocused: (isFocused) => client()?.tellOfSurface(name(), isFocused ? "focus" : "unfocus"),
    setSize: (width, height, states = ["activated"]) => {
      const size = { width: Math.round(width), height: Math.round(height) };
      client()?.tellOfSurface(name(), "resize", { ...size, states: [...states] });
    },
  };
}
