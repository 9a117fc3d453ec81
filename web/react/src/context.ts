/** Context of the components below a provider: the client and the custom components. */

import {
  type ArpCapabilities,
  type ArpClient,
  type ArpClientCallbacks,
  type Status,
  type TurnState,
} from "@agent-rendering/core";
import {
  createContext,
  createElement,
  useContext,
  useMemo,
  type ComponentType,
  type ReactElement,
  type ReactNode,
} from "react";
import { fixed } from "../../bindings/src/cells.js";
import { offering } from "../../bindings/src/client_options.js";
import type { OwnComponentProps } from "../../bindings/src/own_components.js";
import { capabilitiesOf, IDLE, IDLE_CELL } from "../../bindings/src/status.js";
import { useCell } from "./cell.js";
import { useClient, type ClientOptions } from "./use_client.js";

/** Props of a custom component in addition to the agent's. */
export interface ArpComponentProps extends OwnComponentProps {
  /** Answer with a text, as in the draft. */
  onInput: (text: string) => void;
}

/** Custom components by type. Each receives the agent's props and `ArpComponentProps`. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- the types of the agent's props are unknown
export type ArpComponents = { readonly [type: string]: ComponentType<any> };

export interface ArpContextValue {
  connected: boolean;
  /** Capabilities of the agent side; `null` until it has sent them. */
  capabilities: ArpCapabilities | null;
  components: ArpComponents;
  /** `null` on the server and without a provider. */
  client: ArpClient | null;
}

const Shared = createContext<ArpContextValue>({ connected: false, capabilities: null, components: {}, client: null });

export interface ArpProviderProps extends Partial<Omit<ClientOptions, "components">> {
  /** An existing client, which the application connects. Without it, a client is created for `url`. */
  client?: ArpClient | null | undefined;
  callbacks?: ArpClientCallbacks | undefined;
  components?: ArpComponents | undefined;
  /** Replaces the client's state, for layouts without a client. */
  connected?: boolean | undefined;
  /** Replaces the client's capabilities, for layouts without a client. */
  capabilities?: ArpCapabilities | null | undefined;
  children?: ReactNode;
}

const NO_COMPONENTS: ArpComponents = {};

/** Provide a client and custom components to all components below. */
export function ArpProvider(props: ArpProviderProps): ReactElement {
  const { client: given, callbacks, components = NO_COMPONENTS, children, ...rest } = props;
  const { connected: connectedProp, capabilities: capabilitiesProp, ...options } = rest;
  const isOwn = given === undefined && options.url !== undefined;
  const own = useClient(isOwn ? (offering(options, components) as ClientOptions) : null, callbacks);
  const client = given ?? own;
  const status = useArpStatus(client);
  const connected = connectedProp ?? status.phase === "online";
  const capabilities = capabilitiesProp ?? capabilitiesOf(status);
  const value = useMemo(
    () => ({ connected, capabilities, components, client }),
    [connected, capabilities, components, client],
  );
  return createElement(Shared.Provider, { value }, children);
}

/** Return the values of the nearest provider. */
export function useArpContext(): ArpContextValue {
  return useContext(Shared);
}

/** Return the client of the nearest provider; `null` on the server. */
export function useArpClient(): ArpClient | null {
  return useArpContext().client;
}

/** Return the status of connection and session, by default of the nearest provider's client. */
export function useArpStatus(client?: ArpClient | null): Status {
  const shared = useArpClient();
  return useCell((client === undefined ? shared : client)?.store.status ?? IDLE_CELL, IDLE);
}

/** Return the ids of the turns, oldest first. */
export function useArpTurnIds(client?: ArpClient | null): readonly string[] {
  const shared = useArpClient();
  return useCell((client === undefined ? shared : client)?.store.turnIds ?? NO_IDS_CELL, NO_IDS);
}

/** Return one turn. The component is rendered again only when something in the turn changes. */
export function useArpTurn(id: string, client?: ArpClient | null): TurnState | undefined {
  const shared = useArpClient();
  return useCell((client === undefined ? shared : client)?.store.turn(id) ?? NO_TURN, undefined);
}

const NO_IDS: readonly string[] = [];
const NO_IDS_CELL = fixed(NO_IDS);
const NO_TURN = fixed<TurnState | undefined>(undefined);
