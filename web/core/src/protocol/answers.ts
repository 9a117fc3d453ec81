/** Answers to questions, which are components that wait for an input. Source: protocol.md 2.2 and 3. */

import { ANSWER, QUESTION_STATES, QUESTIONS, VERSIONS } from "./generated/tables.js";
import type { Component, Input, Json, JsonObject } from "./generated/wire.js";

export type InputType = Input["input_type"];

/** Types of inputs that only report something. They do not begin a turn, and they are acknowledged without an echo. */
export const SILENT = ["focus", "unfocus", "resize"];

export type QuestionState = "open" | "answered" | "declined" | "expired" | "cancelled";

const isCustom = (type: string) => !Object.hasOwn(VERSIONS, type);

/** Return whether a component of the catalog is a question. A table is a question if its rows can be selected. */
export function isQuestion({ type, props }: Component): boolean {
  return type === "table"
    ? ["one", "many"].includes(props.selectable as string)
    : (QUESTIONS as readonly string[]).includes(type);
}

/**
 * Return the state of a question, or `null` if the component is not a question. Only an open question can be answered.
 * A custom component is a question if the agent side has set its state.
 */
export function questionState(component: Component): QuestionState | null {
  const state = component.props.state as QuestionState | null | undefined;
  if (isCustom(component.type)) return QUESTION_STATES.find((known) => known === state) ?? null;
  return isQuestion(component) ? (state ?? "open") : null;
}

/**
 * Return type and data of the input that answers a component.
 *
 * @param value `form`: the fields by name; `confirm`: true or false; `choices`: the selected values; `table`: the
 *   indexes of the selected rows, from 0; `text-input`: the text; `tabs`: the index of the tab, from 0; custom
 *   component: any JSON, which `turn.ask` returns.
 * @throws TypeError The component is not a question.
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
