/** Properties of a custom component, filtered from the props that the agent side sent. */

import { questionState } from "../protocol/answers.js";
import type { Component } from "../protocol/generated/wire.js";

/** Names with a meaning in React, Vue or the DOM, in lower case. */
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
 * Return the agent's props without those that a framework would apply instead of passing on, such as event handlers and
 * markup: with them, an agent could run code in the page. HTML ignores case, so `ONCLICK` is a handler too. Vue sets
 * `.x` as a property and `^x` as an attribute.
 */
export function drawingProps({ props }: Component): Record<string, unknown> {
  const safe = Object.entries(props).filter(([name, value]) => {
    const plain = name.toLowerCase();
    const isStyle = plain === "style" && (name !== plain || typeof value === "object");
    return !NEVER.has(plain) && !/^on|html$|^[.^:@]/.test(plain) && !isStyle;
  });
  return Object.fromEntries(safe);
}

/** Return whether a component is a question that can no longer be answered. */
export function isClosed(component: Component): boolean {
  return (questionState(component) ?? "open") !== "open";
}
