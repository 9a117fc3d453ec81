/** Registry of the components that draw each type, for any framework. */

import { VERSIONS } from "../protocol/generated/tables.js";
import type { BuiltInComponentType } from "../protocol/draft_types.js";

/** Maps component types to the components that draw them. */
export interface ComponentRegistry<T = unknown> {
  register(typeName: string, component: T): void;
  unregister(typeName: string): void;
  get(typeName: string): T | undefined;
  list(): string[];
  has(typeName: string): boolean;
}

/** All types of the catalog, in the catalog's order. */
export const BUILT_IN_COMPONENTS = Object.keys(VERSIONS) as readonly BuiltInComponentType[];

/** Create a registry with the given components. */
export function createComponentRegistry<T>(initial: Record<string, T> = {}): ComponentRegistry<T> {
  const known = new Map(Object.entries(initial));
  return {
    register: (typeName, component) => void known.set(typeName, component),
    unregister: (typeName) => void known.delete(typeName),
    get: (typeName) => known.get(typeName),
    list: () => [...known.keys()],
    has: (typeName) => known.has(typeName),
  };
}
