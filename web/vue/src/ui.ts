/** The built-in components as Vue components (`@agent-rendering/vue/ui`). */

export * from "./generated/built_ins.js";
export type { BuiltInProps } from "../../bindings/src/built_in.js";
