/** Actions of a surface for applications that place it themselves. */

import type { ArpClient } from "@agent-rendering/core";

export interface SurfaceActions {
  /** Close the surface for every renderer. Calls the agent's `on_close`. */
  close: () => void;
  /** Report whether the surface has the focus. Calls the agent's `on_focus`. */
  setFocused: (isFocused: boolean) => void;
  /** Report the size in CSS pixels, and the states. Calls the agent's `on_configure`. */
  setSize: (width: number, height: number, states?: readonly string[]) => void;
}

/** Return the actions of a surface. Client and name are read at the time of the call. */
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
