/** The components of `/ui`, which wrap the elements. */

import type { CoreProps } from "@agent-rendering/core";

/** Property of each component of `/ui`, with its type: `ownOf` leaves these to the elements. */
export const BUILT_IN = Symbol.for("arp.builtIn");

/** The agent's props, whether it can no longer be answered, and where answers go. */
export type BuiltInProps<Type extends keyof CoreProps> = CoreProps[Type] & {
  _restored?: boolean | undefined;
  /** Receives answers as texts; without it they go to the nearest provider's client. */
  onInput?: ((text: string) => void) | undefined;
};

const NOT_THE_AGENTS = new Set(["component", "context", "answer", "action", "onAnswer", "onAction"]);

/** Return whether a prop is part of the component, not one that every own component gets. */
export function isAgentsProp(name: string): boolean {
  return !NOT_THE_AGENTS.has(name);
}

/** Return the name for tools of developers: `ArpStatusCard` for `status-card`. */
export function builtInName(type: string): string {
  return `Arp${type.replace(/(?:^|-)([a-z])/g, (_, letter: string) => letter.toUpperCase())}`;
}
