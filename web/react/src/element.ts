/** Custom elements from React: properties and events, the same in React 18 and 19. */

import { createElement, useCallback, useEffect, useRef, type ReactElement } from "react";
import { setProperties, type Properties } from "../../bindings/src/element.js";
import { useBrowserLayoutEffect, useLatest } from "./cell.js";

/** Handlers by the name of their event. */
export type Handlers = { readonly [event: string]: (event: CustomEvent) => void };

interface ElementProps {
  readonly tag: string;
  /** Set as properties, those alone that changed. */
  readonly properties: Properties;
  readonly on?: Handlers;
  /** Called with the element, and with `null` when it goes. */
  readonly taken?: ((element: HTMLElement | null) => void) | undefined;
}

const NO_HANDLERS: Handlers = {};

/** A custom element that React leaves the inside of alone. */
export function CustomElement({ tag, properties, on = NO_HANDLERS, taken }: ElementProps): ReactElement {
  const element = useRef<HTMLElement | null>(null);
  const latest = useLatest({ on, taken });
  const events = Object.keys(on).sort().join(" ");

  const take = useCallback(
    (node: HTMLElement | null) => {
      element.current = node;
      latest.current.taken?.(node);
    },
    [latest],
  );
  useBrowserLayoutEffect(() => {
    if (element.current) setProperties(element.current, properties);
  });
  useEffect(() => {
    const target = element.current as HTMLElement;
    const names = events === "" ? [] : events.split(" ");
    const receive = (event: Event) => latest.current.on[event.type]?.(event as CustomEvent);
    for (const name of names) target.addEventListener(name, receive);
    return () => names.forEach((name) => target.removeEventListener(name, receive));
  }, [events, latest]);

  return createElement(tag, { ref: take });
}
