/** Separate entry (`@agent-rendering/core/timeline`): layout and events of turns, for code that draws them. */

export { childrenOf } from "./chat/children.js";
export { StepSpans } from "./chat/step_spans.js";
export type { StepSpan } from "./chat/step_spans.js";
export { TurnEvents } from "./chat/turn_events.js";
export { isGrown, plainTextOf, sectionsOf } from "./chat/sections.js";
export type { Block, Section, Step } from "./chat/sections.js";
