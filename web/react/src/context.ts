/** What components below a provider share: the client, and components of the application's own. */

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

/** Props that a component of your own gets besides the agent's. */
export interface ArpComponentProps extends OwnComponentProps {
  /** The draft's way to answer: with a text. */
  onInput: (text: string) => void;
}

/** Components of your own by type; each gets the agent's props and `ArpComponentProps`. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- the agent's props have any shape
export type ArpComponents = { readonly [type: string]: ComponentType<any> };

export interface ArpContextValue {
  connected: boolean;
  /** `null` until the agent side has sent it. */
  capabilities: ArpCapabilities | null;
  components: ArpComponents;
  /** `null` on the server and without a provider. */
  client: ArpClient | null;
}

const Shared = createContext<ArpContextValue>({ connected: false, capabilities: null, components: {}, client: null });

export interface ArpProviderProps extends Partial<Omit<ClientOptions, "components">> {
  /** A client of your own; you connect it. Else `url` makes one. */
  client?: ArpClient | null | undefined;
  callbacks?: ArpClientCallbacks | undefined;
  components?: ArpComponents | undefined;
  /** These two are in for what the client says, in layouts without one. */
  connected?: boolean | undefined;
  capabilities?: ArpCapabilities | null | undefined;
  children?: ReactNode;
}

const NO_COMPONENTS: ArpComponents = {};

/** Provides a client, and components of your own, to all below. */
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

/** What the nearest provider gives. */
export function useArpContext(): ArpContextValue {
  return useContext(Shared);
}

/** The client of the nearest provider; `null` on the server. */
export function useArpClient(): ArpClient | null {
  return useArpContext().client;
}

/** The connection and the session, of a client or of the nearest provider's. */
export function useArpStatus(client?: ArpClient | null): Status {
  const shared = useArpClient();
  return useCell((client === undefined ? shared : client)?.store.status ?? IDLE_CELL, IDLE);
}

/** Ids of the turns, oldest first. */
export function useArpTurnIds(client?: ArpClient | null): readonly string[] {
  const shared = useArpClient();
  return useCell((client === undefined ? shared : client)?.store.turnIds ?? NO_IDS_CELL, NO_IDS);
}

/** One turn; drawn again only when something in it changes. */
export function useArpTurn(id: string, client?: ArpClient | null): TurnState | undefined {
  const shared = useArpClient();
  return useCell((client === undefined ? shared : client)?.store.turn(id) ?? NO_TURN, undefined);
}

const NO_IDS: readonly string[] = [];
const NO_IDS_CELL = fixed(NO_IDS);
const NO_TURN = fixed<TurnState | undefined>(undefined);
