/** Custom components: their props, their places inside the elements, and a boundary for their errors. */

import type { Component as ArpComponent } from "@agent-rendering/core";
import { drawingProps } from "@agent-rendering/core/chat";
import type { ArpContext, Components } from "@agent-rendering/elements/components";
import { Places, showFailure, type Place } from "@agent-rendering/elements/places";
import {
  computed,
  defineComponent,
  h,
  onErrorCaptured,
  ref,
  shallowRef,
  Teleport,
  watch,
  type Component,
  type ComputedRef,
  type PropType,
  type Ref,
  type VNode,
} from "vue";
import { BUILT_IN } from "../../bindings/src/built_in.js";
import { answerText, ownProps, registryOf, typesKey } from "../../bindings/src/own_components.js";
import { useCell } from "./cell.js";
import type { ArpComponents } from "./provide.js";

/** Return a registry for the elements, and the teleports that fill the places which the elements create. */
export function useOwnComponents(components: () => ArpComponents): {
  registry: ComputedRef<Components>;
  teleports: () => VNode[];
} {
  const places = new Places();
  const list = useCell(places.places);
  const types = computed(() => typesKey(components()));
  const registry = computed(() => registryOf(places, types.value));
  return { registry, teleports: () => list.value.flatMap((place) => teleport(place, components())) };
}

function teleport({ key, node, component, context }: Place, components: ArpComponents): VNode[] {
  const own = components[component.type];
  if (own === undefined) return [];
  return [h(Teleport, { to: node, key }, [h(OwnComponent, { own, component, context })])];
}

/** One custom component. If it throws, an error card is shown until a new version of the component arrives. */
export const OwnComponent = defineComponent({
  name: "ArpOwnComponent",
  inheritAttrs: false,
  props: {
    own: { type: [Object, Function] as PropType<Component>, required: true },
    component: { type: Object as PropType<ArpComponent>, required: true },
    context: { type: Object as PropType<ArpContext>, required: true },
    onText: { type: Function as PropType<(text: string) => void>, default: undefined },
  },
  setup(props) {
    const failure = shallowRef<{ readonly cause: unknown } | null>(null);
    onErrorCaptured((cause) => {
      failure.value = { cause };
      return false;
    });
    watch(
      () => props.component,
      () => (failure.value = null),
    );
    const isLoaded = useLoaded(() => props.own);
    return () => {
      const { own, component, context, onText } = props;
      if (!isLoaded.value) return h(own);
      if (failure.value !== null) return h(Failure, { component, context, cause: failure.value.cause });
      return h(own, propsFor(own, component, context, onText));
    };
  },
});

/** Internal fields of Vue's async components. */
interface Async {
  readonly __asyncLoader?: () => Promise<Component>;
  readonly __asyncResolved?: Component;
}

/** Return whether a component is loaded. Before that, the props that it declares are unknown. */
function useLoaded(own: () => Component): Readonly<Ref<boolean>> {
  const isLoaded = ref(true);
  const check = (component: Component) => {
    const { __asyncLoader: load, __asyncResolved: resolved } = component as Async;
    isLoaded.value = load === undefined || resolved !== undefined;
    // If loading fails, Vue shows the failure where the component is drawn.
    if (!isLoaded.value)
      void load?.().then(
        () => check(own()),
        () => undefined,
      );
  };
  watch(own, check, { immediate: true });
  return isLoaded;
}

const Failure = defineComponent({
  name: "ArpFailure",
  props: {
    component: { type: Object as PropType<ArpComponent>, required: true },
    context: { type: Object as PropType<ArpContext>, required: true },
    cause: null,
  },
  setup(props) {
    const show = (node: unknown) => {
      if (node !== null) showFailure(node as HTMLElement, props.component, props.context, props.cause);
    };
    return () => h("div", { ref: show });
  },
});

/**
 * Return the props and listeners of a custom component, only those that it declares. An undeclared prop would fall
 * through to the root element of the component, where the agent's `style` or `onclick` would take effect.
 */
function propsFor(
  own: Component,
  component: ArpComponent,
  context: ArpContext,
  onText?: (text: string) => void,
): object {
  const ours = ownProps(component, context);
  const onInput = (text: unknown) => {
    if (typeof text !== "string") return; // a bubbling `input` event of the DOM
    if (onText) onText(text);
    else answerText(component, context, text);
  };
  const handlers = { input: onInput, answer: ours.answer, action: ours.action };
  const props: Record<string, unknown> = { ...drawingProps(component), ...ours };
  const wanted = declared(own, "props");
  const emitted = declared(own, "emits");
  const given = Object.entries(props).filter(([name]) => (wanted === null ? name !== "style" : wanted.has(name)));
  const listened = Object.entries(handlers).filter(([name]) => emitted === null || emitted.has(name));
  return Object.fromEntries([
    ...given,
    ...listened.map(([name, handler]) => [`on${name.slice(0, 1).toUpperCase()}${name.slice(1)}`, handler]),
  ]);
}

interface Declaring {
  readonly props?: unknown;
  readonly emits?: unknown;
  readonly extends?: Component;
  readonly mixins?: Component[];
}

/** Return the names that a component declares, or `null` if it handles all: a plain function or a built-in one. */
function declared(own: Component, kind: "props" | "emits"): Set<string> | null {
  const options = ((own as Async).__asyncResolved ?? own) as Declaring;
  const names = options[kind];
  if (BUILT_IN in own) return null;
  if (names === undefined && typeof options === "function") return null;
  const list = Array.isArray(names) ? (names as string[]) : Object.keys((names ?? {}) as object);
  const inherited = [options.extends, ...(options.mixins ?? [])].flatMap((other) =>
    other ? [...(declared(other, kind) ?? [])] : [],
  );
  return new Set([...list, ...inherited]);
}
