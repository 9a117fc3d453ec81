/** A built-in component as a Vue component. */

import type { CoreProps, JsonObject } from "@agent-rendering/core";
import { defineComponent, getCurrentInstance, h, useId, type DefineComponent } from "vue";
import { BUILT_IN, builtInName, isAgentsProp, type BuiltInProps } from "../../bindings/src/built_in.js";
import { ArpRenderer } from "./renderer.js";

/** Return a Vue component that draws its attributes as a component of a type. Names may use `-` instead of `_`. */
export function builtIn<Type extends keyof CoreProps>(type: Type): DefineComponent<BuiltInProps<Type>> {
  const component = defineComponent({
    name: builtInName(type),
    inheritAttrs: false,
    setup(_, { attrs }) {
      const id = useId();
      const self = getCurrentInstance();
      return () => {
        const { _restored, onInput, ...given } = attrs as Record<string, unknown>;
        const named = Object.entries(given).map(([key, value]) => [key.replaceAll("-", "_"), value] as const);
        const props = Object.fromEntries(named.filter(([key]) => isAgentsProp(key)));
        const listener = onInput ?? self?.vnode.props?.onInput;
        return h(ArpRenderer, {
          component: { id, type, props: props as JsonObject },
          restored: _restored === true || _restored === "",
          ...(listener ? { onInput: listener as (text: string) => void } : {}),
        });
      };
    },
  });
  return Object.assign(component, { [BUILT_IN]: type }) as unknown as DefineComponent<BuiltInProps<Type>>;
}
