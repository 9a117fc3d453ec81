/** Custom components of an application: their types, their props, and their answers. */

import type { Component, Json } from "@agent-rendering/core";
import { isClosed } from "@agent-rendering/core/chat";
import type { ArpContext, Components } from "@agent-rendering/elements/components";
import type { Places } from "@agent-rendering/elements/places";
import { BUILT_IN } from "./built_in.js";

/** Props of a custom component in addition to the agent's. */
export interface OwnComponentProps {
  /** The component as the agent side sent it, with `id` and `type`. */
  component: Component;
  /** Texts, theme and client. */
  context: ArpContext;
  /** Answer a question; only the first call counts. */
  answer: (value: Json) => void;
  /** Send an action of this component. */
  action: (name: string, payload?: unknown) => void;
  /** Whether the component can no longer be answered. */
  _restored: boolean;
}

/** Return the props of a custom component that are added to the agent's. */
export function ownProps(component: Component, context: ArpContext): OwnComponentProps {
  return {
    component,
    context,
    answer: (value) => void context.answer(component, value),
    action: (name, payload) => context.action(component, name, payload),
    _restored: isClosed(component),
  };
}

/** Return the components without those of `/ui` under their own type, which the elements draw anyway. */
export function ownOf<C extends object>(components: { readonly [type: string]: C }): { readonly [type: string]: C } {
  const own = Object.entries(components).filter(
    ([type, component]) => (component as { [BUILT_IN]?: string })[BUILT_IN] !== type,
  );
  return Object.fromEntries(own);
}

/** Return the types as one text. While the text is the same, the same registry can be used. */
export function typesKey(components: object): string {
  return Object.keys(components).sort().join("\n");
}

/** Return a registry for the elements that creates a place for each component of these types. */
export function registryOf(places: Places, key: string): Components {
  const known = new Set(key === "" ? [] : key.split("\n"));
  return places.factories({ has: (type) => known.has(type), list: () => [...known] });
}

/**
 * Answer a component with a text, as in the draft. The text is the selected value of `choices` and the answer of
 * `text-input`; for every other type it is sent as a message.
 */
export function answerText(component: Component, context: ArpContext, text: string): void {
  const value: Json | undefined =
    component.type === "choices" ? [text] : component.type === "text-input" ? text : undefined;
  if (value === undefined) context.client?.sendText(text);
  else void context.answer(component, value);
}

/** Return a function for `ArpContext.answer` that passes each answer to `onText` as a text. */
export function asText(onText: (text: string) => void) {
  return (_component: unknown, value: unknown): void => {
    onText(Array.isArray(value) ? value.join(", ") : typeof value === "string" ? value : JSON.stringify(value));
  };
}
