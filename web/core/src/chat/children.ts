/** Child components of a component. */

import type { Component } from "../protocol/generated/wire.js";

/** Return the child components of a component of any type; malformed children are left out. */
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
