/** The built-in components of `/ui`, which wrap the elements. */

import type { CoreProps } from "@agent-rendering/core";

/** Key of the component type in each component of `/ui`. `ownOf` leaves these components to the elements. */
export const BUILT_IN = Symbol.for("arp.builtIn");

/** Props of a built-in component: those of its type in the catalog, and the following ones. */
export type BuiltInProps<Type extends keyof CoreProps> = CoreProps[Type] & {
  /** Whether the component can no longer be answered. */
  _restored?: boolean | undefined;
  /** Receives answers as texts. Without it, answers go to the client of the nearest provider. */
  onInput?: ((text: string) => void) | undefined;
};

const NOT_THE_AGENTS = new Set(["component", "context", "answer", "action", "onAnswer", "onAction"]);

/** Return whether a prop belongs to the component's type; the others are passed to every custom component. */
export function isAgentsProp(name: string): boolean {
  return !NOT_THE_AGENTS.has(name);
}

/** Return the name of a component in developer tools: `ArpStatusCard` for `status-card`. */
export function builtInName(type: string): string {
  return `Arp${type.replace(/(?:^|-)([a-z])/g, (_, letter: string) => letter.toUpperCase())}`;
}
