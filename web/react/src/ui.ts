/** The built-in components as React components (`@agent-rendering/react/ui`). */

export * from "./generated/built_ins.js";
export type { BuiltInProps } from "../../bindings/src/built_in.js";
