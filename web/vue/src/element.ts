/** Custom elements in Vue: their properties, and whether they can be drawn yet. */

import { defineComponent, h, onMounted, ref, shallowRef, watch, type PropType, type Ref } from "vue";
import { setProperties, type Properties } from "../../bindings/src/element.js";

/** A custom element. Vue does not touch its children. `properties` are set as properties, never as attributes. */
export const CustomElement = defineComponent({
  name: "ArpCustomElement",
  props: {
    tag: { type: String, required: true },
    properties: { type: Object as PropType<Properties>, required: true },
    elementRef: { type: Function as PropType<(element: HTMLElement | null) => void>, default: undefined },
  },
  setup(props) {
    const element = shallowRef<HTMLElement | null>(null);
    const set = () => {
      if (element.value) setProperties(element.value, props.properties);
    };
    watch(() => props.properties, set, { flush: "post" });
    const setElement = (node: unknown) => {
      const found = node as HTMLElement | null;
      if (found === element.value) return;
      element.value = found;
      set();
      props.elementRef?.(found);
    };
    return () => h(props.tag, { ref: setElement });
  },
});

/** Return whether elements can be drawn: in a browser, after hydration. */
export function useBrowser(): Readonly<Ref<boolean>> {
  const isBrowser = ref(false);
  onMounted(() => {
    isBrowser.value = true;
  });
  return isBrowser;
}
