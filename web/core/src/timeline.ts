/** An entry of its own (`@agent-rendering/core/timeline`): the layout of turns and their events, for whatever draws them. */

export { childrenOf } from "./chat/children.js";
export { StepSpans } from "./chat/step_spans.js";
export type { StepSpan } from "./chat/step_spans.js";
export { TurnEvents } from "./chat/turn_events.js";
export { isGrown, plainTextOf, sectionsOf } from "./chat/sections.js";
export type { Block, Section, Step } from "./chat/sections.js";
