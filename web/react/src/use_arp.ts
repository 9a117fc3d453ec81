/** The connection alone, for applications that draw everything by themselves. */

import type { ArpCapabilities, ArpClient, ArpClientCallbacks, Status } from "@agent-rendering/core";
import { useCallback, useMemo } from "react";
import { capabilitiesOf } from "../../bindings/src/status.js";
import { useArpStatus } from "./context.js";
import { useClient, type ClientOptions } from "./use_client.js";

export interface UseArpOptions extends ClientOptions {}

export interface ArpState {
  connected: boolean;
  /** `null` until the agent side has sent it. */
  capabilities: ArpCapabilities | null;
}

export interface UseArpReturn {
  state: ArpState;
  /** The whole of the connection: phase, tries, reason, session. */
  status: Status;
  /** There from the first drawing in a browser; `null` on the server. */
  client: ArpClient | null;
  connect: () => void;
  disconnect: () => void;
}

/**
 * A client that connects when the component is there and disconnects when it has gone.
 *
 * @param callbacks Called as things happen; always those of the newest drawing.
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
