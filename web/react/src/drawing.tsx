/** Custom components: their props, their places inside the elements, and a boundary for their errors. */

import type { Component } from "@agent-rendering/core";
import { drawingProps } from "@agent-rendering/core/chat";
import type { ArpContext, Components } from "@agent-rendering/elements/components";
import { Places, showFailure, type Place } from "@agent-rendering/elements/places";
import { Component as ReactComponent, memo, useMemo, useRef, useState, type ReactElement, type ReactNode } from "react";
import { createPortal } from "react-dom";
import { answerText, ownProps, registryOf, typesKey } from "../../bindings/src/own_components.js";
import { useBrowserLayoutEffect, useCell } from "./cell.js";
import type { ArpComponentProps, ArpComponents } from "./context.js";

/** Return components that draw text with a function. */
export function textsBy(renderMarkdown: (content: string) => ReactNode): ArpComponents {
  const Text = ({ component: { props } }: { component: Component }) => (
    <>{renderMarkdown(String(props.content ?? props.text ?? ""))}</>
  );
  return { text: Text, markdown: Text };
}

/** Return a registry for the elements, and the portals that fill the places which the elements create. */
export function useOwnComponents(components: ArpComponents): { registry: Components; portals: ReactElement } {
  const [places] = useState(() => new Places());
  const types = typesKey(components);
  const registry = useMemo(() => registryOf(places, types), [places, types]);
  return { registry, portals: <Portals places={places} components={components} /> };
}

const NO_PLACES: readonly Place[] = [];

function Portals({ places, components }: { places: Places; components: ArpComponents }): ReactElement {
  const list = useCell(places.places, NO_PLACES);
  return (
    <>
      {list.map((place) => {
        const Own = components[place.component.type];
        if (Own === undefined) return null;
        const { component, context, node, key } = place;
        return createPortal(<OwnComponent own={Own} component={component} context={context} />, node, key);
      })}
    </>
  );
}

interface OwnProps {
  own: ArpComponents[string];
  component: Component;
  context: ArpContext;
  /** Receives answers as texts, instead of the client. */
  onInput?: ((text: string) => void) | undefined;
}

/** One custom component inside an error boundary. */
export const OwnComponent = memo(function OwnComponent({
  own: Own,
  component,
  context,
  onInput,
}: OwnProps): ReactElement {
  const given = useMemo(
    (): ArpComponentProps => ({
      ...ownProps(component, context),
      onInput: onInput ?? ((text) => answerText(component, context, text)),
    }),
    [component, context, onInput],
  );
  return (
    <ErrorBoundary component={component} context={context}>
      <Own {...drawingProps(component)} {...given} />
    </ErrorBoundary>
  );
});

interface BoundaryProps {
  component: Component;
  context: ArpContext;
  children: ReactNode;
}

interface BoundaryState {
  error: { readonly cause: unknown } | null;
  /** Version of the component that `error` belongs to. */
  component: Component;
}

/** Shows an error card if its child throws, until a new version of the component arrives. */
class ErrorBoundary extends ReactComponent<BoundaryProps, BoundaryState> {
  override state: BoundaryState = { error: null, component: this.props.component };

  static getDerivedStateFromError(cause: unknown): Partial<BoundaryState> {
    return { error: { cause } };
  }

  static getDerivedStateFromProps(props: BoundaryProps, state: BoundaryState): Partial<BoundaryState> | null {
    return props.component === state.component ? null : { component: props.component, error: null };
  }

  override render(): ReactNode {
    const { component, context, children } = this.props;
    const { error } = this.state;
    return error === null ? children : <Failure component={component} context={context} error={error.cause} />;
  }
}

function Failure({
  component,
  context,
  error,
}: {
  component: Component;
  context: ArpContext;
  error: unknown;
}): ReactElement {
  const node = useRef<HTMLDivElement>(null);
  useBrowserLayoutEffect(() => {
    if (node.current) showFailure(node.current, component, context, error);
  }, [component, context, error]);
  return <div ref={node} />;
}
