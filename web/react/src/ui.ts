/** Each built-in component as a React component (`@agent-rendering/react/ui`). */

export * from "./generated/built_ins.js";
export type { BuiltInProps } from "../../bindings/src/built_in.js";
