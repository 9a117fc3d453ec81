/** Components of the application's own: what they get, where they stand, and what they may break. */

import type { Component } from "@agent-rendering/core";
import { drawingProps } from "@agent-rendering/core/chat";
import type { ArpContext, Components } from "@agent-rendering/elements/components";
import { Places, showFailure, type Place } from "@agent-rendering/elements/places";
import { Component as ReactComponent, memo, useMemo, useRef, useState, type ReactElement, type ReactNode } from "react";
import { createPortal } from "react-dom";
import { answerText, ownProps, registryOf, typesKey } from "../../bindings/src/own_components.js";
import { useBrowserLayoutEffect, useCell } from "./cell.js";
import type { ArpComponentProps, ArpComponents } from "./context.js";

/** Components that draw text by a function. */
export function textsBy(renderMarkdown: (content: string) => ReactNode): ArpComponents {
  const Text = ({ component: { props } }: { component: Component }) => (
    <>{renderMarkdown(String(props.content ?? props.text ?? ""))}</>
  );
  return { text: Text, markdown: Text };
}

/** A registry for the elements, and what is to be drawn in their places. */
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
  /** Takes texts in place of the client. */
  onInput?: ((text: string) => void) | undefined;
}

/** One component of the application's own, behind a wall. */
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
    <Wall component={component} context={context}>
      <Own {...drawingProps(component)} {...given} />
    </Wall>
  );
});

interface WallProps {
  component: Component;
  context: ArpContext;
  children: ReactNode;
}

interface WallState {
  error: { readonly cause: unknown } | null;
  at: Component;
}

/** What throws inside shows one error card, until another version of the component comes. */
class Wall extends ReactComponent<WallProps, WallState> {
  override state: WallState = { error: null, at: this.props.component };

  static getDerivedStateFromError(cause: unknown): Partial<WallState> {
    return { error: { cause } };
  }

  static getDerivedStateFromProps({ component }: WallProps, { at }: WallState): Partial<WallState> | null {
    return component === at ? null : { at: component, error: null };
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
