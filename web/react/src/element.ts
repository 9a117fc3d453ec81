/** Custom elements in React, with properties and events that work the same in React 18 and 19. */

import { createElement, useCallback, useEffect, useRef, type ReactElement } from "react";
import { setProperties, type Properties } from "../../bindings/src/element.js";
import { useBrowserLayoutEffect, useLatest } from "./cell.js";

/** Event handlers by the name of the event. */
export type Handlers = { readonly [event: string]: (event: CustomEvent) => void };

interface ElementProps {
  readonly tag: string;
  /** Values that are set as properties of the element when they change. */
  readonly properties: Properties;
  readonly on?: Handlers;
  /** Called with the element when it is created, and with `null` when it is removed. */
  readonly elementRef?: ((element: HTMLElement | null) => void) | undefined;
}

const NO_HANDLERS: Handlers = {};

/** A custom element. React does not touch its children. */
export function CustomElement({ tag, properties, on = NO_HANDLERS, elementRef }: ElementProps): ReactElement {
  const element = useRef<HTMLElement | null>(null);
  const latest = useLatest({ on, elementRef });
  const events = Object.keys(on).sort().join(" ");

  const setElement = useCallback(
    (node: HTMLElement | null) => {
      element.current = node;
      latest.current.elementRef?.(node);
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

  return createElement(tag, { ref: setElement });
}
