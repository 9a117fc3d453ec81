/** Messages and components in the draft's form. */

import {
  questionState,
  type Component,
  type ErrorPayload,
  type JsonObject,
  type ToolRenderEvent,
  type TurnState,
} from "@agent-rendering/core";
import { turnOf, type MessagePart } from "@agent-rendering/core/chat";
import { defined } from "./client_options.js";

/** A message, as `useArpChat` returns it. */
export interface MessageFields {
  readonly role: "user" | "assistant";
  readonly content: string;
  readonly file?: string | undefined;
  readonly uiEvents?: ToolRenderEvent[] | undefined;
  readonly parts?: readonly MessagePart[] | undefined;
  readonly status?: TurnState["status"] | undefined;
  readonly error?: ErrorPayload | undefined;
}

/** Return a message as a turn. */
export function turnOfMessage({ role, content, ...rest }: MessageFields, id: string): TurnState {
  return turnOf({ ...(defined(rest) as object), role, content }, id);
}

/** Return the component that is drawn: a component, or one in the draft's form; questions expired if restored. */
export function shownComponent(
  given: Component | undefined,
  event: Pick<ToolRenderEvent, "component" | "props"> | undefined,
  isRestored: boolean,
  id: string,
): Component | null {
  const component = given ?? (event && { id, type: event.component, props: event.props as JsonObject });
  if (component === undefined) return null;
  const isExpired = isRestored && questionState(component) !== null;
  return isExpired ? { ...component, props: { state: "expired", ...component.props } } : component;
}
