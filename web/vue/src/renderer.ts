/** One component of any type. */

import type { ArpClient, Component, ToolRenderEvent } from "@agent-rendering/core";
import type { Strings } from "@agent-rendering/core/strings";
import "@agent-rendering/elements";
import { computed, defineComponent, getCurrentInstance, h, useId, type PropType } from "vue";
import { shownComponent } from "../../bindings/src/message.js";
import { asText, ownOf } from "../../bindings/src/own_components.js";
import { OwnComponent, useOwnComponents } from "./drawing.js";
import { CustomElement, useBrowser } from "./element.js";
import { useArpClient, useComponents, type ArpComponents } from "./provide.js";
import { useElementContext } from "./words.js";

const absent = { default: undefined } as const;

/** Draws a component with the custom component of its type, or else with the built-in one. */
export const ArpRenderer = defineComponent({
  name: "ArpRenderer",
  inheritAttrs: false,
  props: {
    component: { type: Object as PropType<Component>, ...absent },
    /** A component in the draft's form. */
    event: { type: Object as PropType<Pick<ToolRenderEvent, "component" | "props">>, ...absent },
    /** Custom components by type, in addition to those of the nearest provider. */
    components: { type: Object as PropType<ArpComponents>, ...absent },
    /** Whether the component can no longer be answered. */
    restored: { type: Boolean, default: false },
    client: { type: Object as PropType<ArpClient | null>, ...absent },
    theme: { type: String as PropType<"light" | "dark" | "system" | "auto">, ...absent },
    locale: { type: String, ...absent },
    strings: { type: Object as PropType<Partial<Strings>>, ...absent },
  },
  emits: {
    /** An answer as a text. If there is a listener, answers go to it instead of the client. */
    input: (_text: string) => true,
  },
  setup(props, { emit }) {
    const shared = useArpClient();
    const client = computed(() => (props.client === undefined ? shared.value : props.client));
    const id = useId();
    const component = computed(() => shownComponent(props.component, props.event, props.restored, id));
    const components = useComponents(() => props.components);
    const own = computed(() => ownOf(components.value));
    const { registry, teleports } = useOwnComponents(() => own.value);
    const hasListener = getCurrentInstance()?.vnode.props?.onInput !== undefined;
    const say = (text: string) => emit("input", text);
    const context = useElementContext(() => ({
      client: client.value,
      registry: registry.value,
      locale: props.locale,
      strings: props.strings,
      theme: props.theme,
      answer: hasListener ? asText(say) : undefined,
    }));
    const isBrowser = useBrowser();
    const properties = computed(() => ({ component: component.value, context: context.value }));
    return () => {
      const shown = component.value;
      if (shown === null) return null;
      const drawn = own.value[shown.type];
      if (drawn !== undefined) {
        const onText = hasListener ? say : undefined;
        return h(OwnComponent, { own: drawn, component: shown, context: context.value, ...(onText && { onText }) });
      }
      return h("div", { class: "arp-component-host" }, [
        isBrowser.value
          ? h(CustomElement, { key: "component", tag: "arp-component", properties: properties.value })
          : null,
        ...teleports(),
      ]);
    };
  },
});
