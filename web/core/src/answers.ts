/** How input components are answered. Source: protocol.md 2.2 and 3. */

import { QUESTIONS } from "./generated/tables.js";
import type { Component, Input, Json, JsonObject } from "./generated/wire.js";

export type InputType = Input["input_type"];

export type QuestionState = "open" | "answered" | "declined" | "expired" | "cancelled";

/** The state of a question; `null` for what is none. Only an open one can be answered. */
export function questionState({ type, props }: Component): QuestionState | null {
  const asks = type === "table" ? ["one", "many"].includes(props.selectable as string) : (QUESTIONS as readonly string[]).includes(type);
  if (!asks) return null;
  return (props.state as QuestionState | null | undefined) ?? "open";
}

/**
 * The input that answers a component.
 *
 * @param value Of a `form` its fields by name; of a `confirm` yes or no; of `choices` the values
 *   taken; of a `table` the numbers of the rows, from 0; of a `text-input` the text; of `tabs` the number of the tab.
 * @throws TypeError The component asks nothing.
 */
export function answerOfValue(component: Component, value: Json): [InputType, JsonObject] {
  const asks = component.type === "tabs" || questionState(component) !== null;
  switch (asks ? component.type : "") {
    case "form": {
      const { submit_action: action } = component.props;
      return ["form_submit", { fields: value, ...(typeof action === "string" && { action }) }];
    }
    case "confirm":
      return ["action", { action: value ? "confirm" : "deny" }];
    case "choices":
    case "table":
      return ["selection", { selected: Array.isArray(value) ? value : [value] }];
    case "text-input":
      return ["text", { text: value }];
    case "tabs":
      return ["action", { action: "tab_change", payload: { tab: value } }];
    default:
      throw new TypeError(`arp: a ${component.type} asks nothing`);
  }
}
