/** One component of any type. */

import type { ArpClient, Component, ToolRenderEvent } from "@agent-rendering/core";
import type { Strings } from "@agent-rendering/core/strings";
import "@agent-rendering/elements";
import { useId, useMemo, type ReactElement } from "react";
import { shownComponent } from "../../bindings/src/message.js";
import { asText, ownOf } from "../../bindings/src/own_components.js";
import { useBrowser } from "./cell.js";
import { useArpContext, type ArpComponents } from "./context.js";
import { OwnComponent, useOwnComponents } from "./drawing.js";
import { CustomElement } from "./element.js";
import { useElementContext } from "./words.js";

export interface ArpRendererProps {
  component?: Component | undefined;
  /** A component in the draft's form. */
  event?: ToolRenderEvent | undefined;
  /** Custom components by type, in addition to those of the nearest provider. */
  components?: ArpComponents | undefined;
  /** Whether the component can no longer be answered. */
  restored?: boolean | undefined;
  /** @deprecated Has no effect: the protocol allows at most three levels. */
  maxDepth?: number | undefined;
  /** Receives answers as texts, instead of the client. */
  onInput?: ((text: string) => void) | undefined;
  client?: ArpClient | null | undefined;
  theme?: "light" | "dark" | "system" | "auto" | undefined;
  locale?: string | undefined;
  strings?: Partial<Strings> | undefined;
}

/** Draw a component with the custom component of its type, or else with the built-in one. */
export function ArpRenderer(props: ArpRendererProps): ReactElement | null {
  const { component: given, event, components, restored = false, onInput, client, theme, locale, strings } = props;
  const shared = useArpContext();
  const id = useId();
  const component = useMemo(() => shownComponent(given, event, restored, id), [given, event, restored, id]);
  const own = useMemo(() => ownOf({ ...shared.components, ...components }), [shared.components, components]);
  const { registry, portals } = useOwnComponents(own);
  const activeClient = client === undefined ? shared.client : client;
  const answer = useMemo(() => onInput && asText(onInput), [onInput]);
  const context = useElementContext({ client: activeClient, registry, locale, strings, theme, answer });
  const isBrowser = useBrowser();
  if (component === null) return null;
  const Own = own[component.type];
  if (Own !== undefined) return <OwnComponent own={Own} component={component} context={context} onInput={onInput} />;
  return (
    <div className="arp-component-host">
      {isBrowser && <CustomElement tag="arp-component" properties={{ component, context }} />}
      {portals}
    </div>
  );
}
