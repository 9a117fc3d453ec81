/** Connection only, for applications that draw everything themselves. */

import type { ArpCapabilities, ArpClient, ArpClientCallbacks, Status } from "@agent-rendering/core";
import { computed, type Ref, type ShallowRef } from "vue";
import { capabilitiesOf } from "../../bindings/src/status.js";
import { useArpStatus } from "./provide.js";
import { useClient, type ClientOptions } from "./use_client.js";

export interface UseArpOptions extends ClientOptions {}

export interface UseArpReturn {
  connected: Readonly<Ref<boolean>>;
  /** Capabilities of the agent side; `null` until it has sent them. */
  capabilities: Readonly<Ref<ArpCapabilities | null>>;
  /** Complete state of the connection: phase, attempts, reason, session. */
  status: Readonly<ShallowRef<Status>>;
  /** Client, from the setup in a browser; `null` on the server. */
  client: Readonly<ShallowRef<ArpClient | null>>;
  connect: () => void;
  disconnect: () => void;
}

/** Return a client that connects when the component is mounted and disconnects when it is unmounted. */
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
