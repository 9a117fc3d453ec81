/**
 * Places for components that a framework draws. In the place of such a component the elements put an empty
 * node, which React's portals or Vue's Teleport fill.
 *
 * Theory of operation. The registry that `factories` returns gives the elements one node for each place. The
 * node reports when it enters the document and when it is removed for good, so `places` always lists exactly
 * the nodes to fill. Moving a node within the document is not reported as a removal: a check in a microtask
 * sees that it is connected again, so the framework keeps what it has drawn there.
 */

import type { Cell, Component, ComponentRegistry } from "@agent-rendering/core";
import { render } from "lit";
import type { ArpContext, ComponentFactory, Components } from "./base/context.js";
import { failureCard } from "./base/component_element.js";

/** One component for the framework to draw: the same object until something in it changes. */
export interface Place {
  /** Key for the framework's list; it stays the same as long as the node. */
  readonly key: string;
  readonly node: HTMLElement;
  readonly component: Component;
  readonly context: ArpContext;
}

/** Receives the reports of a node: it entered the document, or it was removed for good. */
interface Watch {
  came(): void;
  left(): void;
}

const TAG = "arp-place";
/** Without a DOM, as on a server, this module can still be imported, but nothing is drawn. */
const Element = (globalThis.HTMLElement ?? Object) as typeof HTMLElement;

/** `<arp-place>`: node that a framework draws into. It has no box of its own in the layout. */
class PlaceElement extends Element {
  watch: Watch | null = null;

  connectedCallback(): void {
    this.style.display = "contents";
    this.watch?.came();
  }

  disconnectedCallback(): void {
    // A node that is moved is connected again before this runs. Reporting it as removed would make the framework
    // unmount the component, and its state would be lost.
    queueMicrotask(() => {
      if (!this.isConnected) this.watch?.left();
    });
  }
}

if (typeof customElements !== "undefined" && !customElements.get(TAG)) {
  customElements.define(TAG, PlaceElement);
}

/** The places in one chat, message or component. */
export class Places {
  /** Places to fill now; the nodes that entered the document first come first. */
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

  /** Return a registry for the elements. It has a factory for each type that `draws` contains. */
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

  /** Return the node of a place: the same node while the place shows the same component. */
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
    // Until the node is in the document, the framework has nothing to draw into; `came` reports the newest state then.
    if (!this.#shown.has(node)) return;
    this.#shown.set(node, place);
    this.#notify();
  }

  #notify(): void {
    this.#list = [...this.#shown.values()];
    for (const listener of [...this.#listeners]) listener();
  }
}

/** Draw the failure card into a node if the framework could not draw its component, and report the failure. */
export function showFailure(node: HTMLElement, component: Component, context: ArpContext, error: unknown): void {
  context.present(component, "failed");
  render(failureCard(context, component, error), node);
}
