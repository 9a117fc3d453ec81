/** Each built-in component as a Vue component (`@agent-rendering/vue/ui`). */

export * from "./generated/built_ins.js";
export type { BuiltInProps } from "../../bindings/src/built_in.js";
