/** The tree of components below a component. */

import type { Component } from "../protocol/generated/wire.js";

/** The components within a component, of whatever type. */
export function childrenOf({ props }: Component): Component[] {
  const { children, tabs, left, right } = props as { [name: string]: unknown };
  const items = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
  const given = [
    ...items(children),
    ...items(tabs).map((tab) => (tab as { component?: unknown } | null)?.component),
    left,
    right,
  ];
  return given.filter(
    (value): value is Component =>
      typeof value === "object" &&
      value !== null &&
      typeof (value as Component).id === "string" &&
      typeof (value as Component).props === "object",
  );
}
