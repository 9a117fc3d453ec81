/**
 * Places for components that a framework draws. The elements leave an empty node where such a
 * component stands; React's portals and Vue's Teleport fill it.
 *
 * Theory of operation. A registry of factories (`factories`) returns the elements one node for each
 * place. The node reports when it comes into the document and when it is removed for good (moving it
 * is neither), so `places` always lists exactly what is to be filled.
 */

import type { Cell, Component, ComponentRegistry } from "@agent-rendering/core";
import { render } from "lit";
import type { ArpContext, ComponentFactory, Components } from "./base/context.js";
import { failureCard } from "./base/component_element.js";

/** One component that the framework is to draw. The same object until something in it changes. */
export interface Place {
  /** Stays with the node. */
  readonly key: string;
  readonly node: HTMLElement;
  readonly component: Component;
  readonly context: ArpContext;
}

/** Called when a node comes and when it has gone. */
interface Watch {
  came(): void;
  left(): void;
}

const TAG = "arp-place";
/** Outside of browsers modules are loaded, and nothing is drawn. */
const Element = (globalThis.HTMLElement ?? Object) as typeof HTMLElement;

/** `<arp-place>`: where a framework draws; without a box of its own. */
class PlaceElement extends Element {
  watch: Watch | null = null;

  connectedCallback(): void {
    this.style.display = "contents";
    this.watch?.came();
  }

  disconnectedCallback(): void {
    queueMicrotask(() => {
      if (!this.isConnected) this.watch?.left();
    });
  }
}

if (typeof customElements !== "undefined" && !customElements.get(TAG)) {
  customElements.define(TAG, PlaceElement);
}

/** The places of one chat, message or component. */
export class Places {
  /** What is to be filled now, in the order in which it came. */
  readonly places: Cell<readonly Place[]>;
  readonly #listeners = new Set<() => void>();
  readonly #nodes = new WeakMap<object, { id: string; type: string; node: PlaceElement }>();
  readonly #shown = new Map<PlaceElement, Place>();
  readonly #pending = new WeakMap<PlaceElement, Place>();
  #list: readonly Place[] = [];
  #made = 0;

  constructor() {
    this.places = {
      get: () => this.#list,
      subscribe: (listener) => {
        const own = () => listener();
        this.#listeners.add(own);
        return () => void this.#listeners.delete(own);
      },
    };
  }

  /** Factories for the elements: of the types that `draws` says the framework draws. */
  factories(draws: { has(type: string): boolean; list(): string[] }): Components {
    const factory: ComponentFactory = (component, context, place) => this.#node(component, context, place);
    const get = (type: string) => (draws.has(type) ? factory : undefined);
    const fixed = (): never => {
      throw new TypeError("arp: give components to the chat, not to the registry of its places");
    };
    const registry: ComponentRegistry<ComponentFactory> = {
      get,
      has: (type) => draws.has(type),
      list: () => draws.list(),
      register: fixed,
      unregister: fixed,
    };
    return registry;
  }

  /** The node of a place: the same one while the same component is there. */
  #node(component: Component, context: ArpContext, place: object): Node {
    const { id, type } = component;
    const known = this.#nodes.get(place);
    if (known?.id === id && known.type === type) {
      this.#fill(known.node, component, context);
      return known.node;
    }
    const node = document.createElement(TAG) as PlaceElement;
    this.#nodes.set(place, { id, type, node });
    const key = `${++this.#made}`;
    this.#pending.set(node, { key, node, component, context });
    node.watch = {
      came: () => {
        this.#shown.set(node, this.#pending.get(node) as Place);
        this.#notify();
      },
      left: () => {
        if (this.#shown.delete(node)) this.#notify();
      },
    };
    return node;
  }

  #fill(node: PlaceElement, component: Component, context: ArpContext): void {
    const old = this.#pending.get(node) as Place;
    if (old.component === component && old.context === context) return;
    const place = { ...old, component, context };
    this.#pending.set(node, place);
    if (!this.#shown.has(node)) return;
    this.#shown.set(node, place);
    this.#notify();
  }

  #notify(): void {
    this.#list = [...this.#shown.values()];
    for (const listener of [...this.#listeners]) listener();
  }
}

/** Shows in a node that a component could not be drawn, as the elements show it. */
export function showFailure(node: HTMLElement, component: Component, context: ArpContext, error: unknown): void {
  context.present(component, "failed");
  render(failureCard(context, component, error), node);
}
