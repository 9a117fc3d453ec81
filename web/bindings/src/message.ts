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

/** Fields of a message that `useArpChat` returns. */
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

/**
 * Return the component to draw.
 *
 * @param event Component in the draft's form, used if `given` is absent.
 * @param isRestored Whether questions can no longer be answered: they get the state `expired` unless they have one.
 * @param id Id of a component in the draft's form, which has none.
 */
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
