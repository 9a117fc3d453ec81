/** A built-in component as a React component. */

import type { CoreProps, JsonObject } from "@agent-rendering/core";
import { useId, useMemo, type ComponentType, type ReactElement } from "react";
import { BUILT_IN, builtInName, isAgentsProp, type BuiltInProps } from "../../bindings/src/built_in.js";
import { ArpRenderer } from "./renderer.js";

/** Return a component that draws its props as a component of a type. */
export function builtIn<Type extends keyof CoreProps>(type: Type): ComponentType<BuiltInProps<Type>> {
  function BuiltIn({ _restored, onInput, ...given }: BuiltInProps<Type>): ReactElement {
    const id = useId();
    const props = Object.fromEntries(Object.entries(given).filter(([key]) => isAgentsProp(key)));
    const values = Object.values(props);
    // Keep the object while its props are the same: with a new one, the element would be drawn again.
    const component = useMemo(() => ({ id, type, props: props as JsonObject }), [id, values.length, ...values]);
    return <ArpRenderer component={component} restored={_restored} onInput={onInput} />;
  }
  return Object.assign(BuiltIn as ComponentType<BuiltInProps<Type>>, {
    [BUILT_IN]: type,
    displayName: builtInName(type),
  });
}
