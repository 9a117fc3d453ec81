/** Connection only, for applications that draw everything themselves. */

import type { ArpCapabilities, ArpClient, ArpClientCallbacks, Status } from "@agent-rendering/core";
import { useCallback, useMemo } from "react";
import { capabilitiesOf } from "../../bindings/src/status.js";
import { useArpStatus } from "./context.js";
import { useClient, type ClientOptions } from "./use_client.js";

export interface UseArpOptions extends ClientOptions {}

export interface ArpState {
  connected: boolean;
  /** Capabilities of the agent side; `null` until it has sent them. */
  capabilities: ArpCapabilities | null;
}

export interface UseArpReturn {
  state: ArpState;
  /** Complete state of the connection: phase, attempts, reason, session. */
  status: Status;
  /** Client, from the first render in a browser; `null` on the server. */
  client: ArpClient | null;
  connect: () => void;
  disconnect: () => void;
}

/**
 * Return a client that connects when the component is mounted and disconnects when it is unmounted.
 *
 * @param callbacks Called for messages; those of the latest render are used.
 */
export function useArp(options: UseArpOptions, callbacks?: ArpClientCallbacks): UseArpReturn {
  const client = useClient(options, callbacks);
  const status = useArpStatus(client);
  const connected = status.phase === "online";
  const capabilities = capabilitiesOf(status);
  const state = useMemo(() => ({ connected, capabilities }), [connected, capabilities]);
  const connect = useCallback(() => client?.connect(), [client]);
  const disconnect = useCallback(() => client?.disconnect(), [client]);
  return { state, status, client, connect, disconnect };
}
