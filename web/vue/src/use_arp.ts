/** The connection alone, for applications that draw everything by themselves. */

import type { ArpCapabilities, ArpClient, ArpClientCallbacks, Status } from "@agent-rendering/core";
import { computed, type Ref, type ShallowRef } from "vue";
import { capabilitiesOf } from "../../bindings/src/status.js";
import { useArpStatus } from "./provide.js";
import { useClient, type ClientOptions } from "./use_client.js";

export interface UseArpOptions extends ClientOptions {}

export interface UseArpReturn {
  connected: Readonly<Ref<boolean>>;
  /** `null` until the agent side has sent it. */
  capabilities: Readonly<Ref<ArpCapabilities | null>>;
  /** The whole of the connection: phase, tries, reason, session. */
  status: Readonly<ShallowRef<Status>>;
  /** There from the setup in a browser; `null` on the server. */
  client: Readonly<ShallowRef<ArpClient | null>>;
  connect: () => void;
  disconnect: () => void;
}

/** A client that connects when the component is there and disconnects when it has gone. */
export function useArp(options: UseArpOptions, callbacks?: ArpClientCallbacks): UseArpReturn {
  const client = useClient(() => options, callbacks);
  const status = useArpStatus(client);
  return {
    connected: computed(() => status.value.phase === "online"),
    capabilities: computed(() => capabilitiesOf(status.value)),
    status,
    client,
    connect: () => client.value?.connect(),
    disconnect: () => client.value?.disconnect(),
  };
}
