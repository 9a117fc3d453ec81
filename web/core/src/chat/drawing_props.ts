/** What a component of an application's own gets as properties, from what the agent side sent. */

import { questionState } from "../protocol/answers.js";
import type { Component } from "../protocol/generated/wire.js";

/** Names that mean something to React, Vue or the DOM itself, wherever they are passed on; in small letters. */
const NEVER = new Set([
  "__proto__",
  "constructor",
  "prototype",
  "children",
  "class",
  "classname",
  "srcdoc",
  "is",
  "key",
  "ref",
  "ref_for",
  "ref_key",
  "slot",
  "component",
  "context",
  "answer",
  "action",
]);

/**
 * The agent's props without those that could do something by their name: no handler, no markup. HTML knows
 * no capitals, so `ONCLICK` is a handler too; and Vue sets `.x` as a property, `^x` as an attribute.
 */
export function drawingProps({ props }: Component): Record<string, unknown> {
  const safe = Object.entries(props).filter(([name, value]) => {
    const plain = name.toLowerCase();
    const isStyle = plain === "style" && (name !== plain || typeof value === "object");
    return !NEVER.has(plain) && !/^on|html$|^[.^:@]/.test(plain) && !isStyle;
  });
  return Object.fromEntries(safe);
}

/** Returns whether a component is a question that can no longer be answered. */
export function isClosed(component: Component): boolean {
  return (questionState(component) ?? "open") !== "open";
}
