/** How input components are answered. Source: protocol.md 2.2 and 3. */

import { ANSWER, QUESTION_STATES, QUESTIONS, VERSIONS } from "./generated/tables.js";
import type { Component, Input, Json, JsonObject } from "./generated/wire.js";

export type InputType = Input["input_type"];

/** Inputs that report something. They begin no turn, and are acknowledged without an echo. */
export const SILENT = ["focus", "unfocus", "resize"];

export type QuestionState = "open" | "answered" | "declined" | "expired" | "cancelled";

const isCustom = (type: string) => !Object.hasOwn(VERSIONS, type);

/** Returns whether a component of the catalog is a question; a table is one if its rows can be selected. */
export function isQuestion({ type, props }: Component): boolean {
  return type === "table"
    ? ["one", "many"].includes(props.selectable as string)
    : (QUESTIONS as readonly string[]).includes(type);
}

/**
 * Returns the state of a question, or `null` if the component is not a question. Only an open one can be answered. A
 * component of your own is a question if the agent side has given it a state.
 */
export function questionState(component: Component): QuestionState | null {
  const state = component.props.state as QuestionState | null | undefined;
  if (isCustom(component.type)) return QUESTION_STATES.find((known) => known === state) ?? null;
  return isQuestion(component) ? (state ?? "open") : null;
}

/**
 * The input that answers a component.
 *
 * @param value Of a `form` its fields by name; of a `confirm` yes or no; of `choices` the values
 *   taken; of a `table` the numbers of the rows, from 0; of a `text-input` the text; of `tabs` the number of the tab; of a
 *   component of your own any JSON, which `turn.ask` returns.
 * @throws TypeError The component asks nothing.
 */
export function answerOfValue(component: Component, value: Json): [InputType, JsonObject] {
  if (isCustom(component.type)) return ["action", { action: ANSWER, payload: value }];
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
