/** A client with the lifetime of a component. */

import { ArpClient, type ArpClientCallbacks, type ArpClientOptions } from "@agent-rendering/core";
import {
  getCurrentInstance,
  onMounted,
  onScopeDispose,
  shallowRef,
  toValue,
  watch,
  type MaybeRefOrGetter,
  type ShallowRef,
} from "vue";
import { defined, type SharedClientOptions } from "../../bindings/src/client_options.js";

/** Options of the client, and whether it connects by itself. */
export interface ClientOptions extends SharedClientOptions {
  /** `ws://HOST/_arp/v1`, or `http://HOST` with the prefix of a mount; a new value creates a new client. */
  url: MaybeRefOrGetter<string>;
  /** Id of the session; a new value switches to that session. Without it the server creates a new session. */
  sessionId?: MaybeRefOrGetter<string | null | undefined>;
}

/**
 * Return a client that connects when the component is mounted and disconnects when it is unmounted. It is `null` on the
 * server and while `options` returns `null`. Outside of a component it connects immediately.
 */
export function useClient(
  options: () => ClientOptions | null,
  callbacks: ArpClientCallbacks = {},
): Readonly<ShallowRef<ArpClient | null>> {
  const address = () => {
    const given = options();
    return given === null || typeof document === "undefined" ? null : toValue(given.url);
  };
  const session = () => toValue(options()?.sessionId);
  const make = (): ArpClient | null => {
    const url = address();
    return url === null ? null : new ArpClient(resolved(options() as ClientOptions, url, session()), callbacks);
  };
  const client = shallowRef(make());
  let isMounted = false;
  const mount = () => {
    isMounted = true;
    if (options()?.autoConnect ?? true) client.value?.connect();
  };
  watch([address, () => options()?.transport], () => {
    client.value?.disconnect();
    client.value = make();
    if (isMounted) mount();
  });
  watch(session, (id) => {
    if (id !== undefined) client.value?.setSessionId(id);
  });
  if (getCurrentInstance()) onMounted(mount);
  else mount();
  onScopeDispose(() => client.value?.disconnect());
  return client;
}

/** Return the options of the core's client, without those that are `undefined`. */
function resolved(options: ClientOptions, url: string, session: string | null | undefined): ArpClientOptions {
  const { autoConnect: _, token: __, ...rest } = options;
  const token = () => (typeof options.token === "function" ? options.token() : (options.token ?? null));
  return { ...(defined(rest) as object), url, sessionId: session ?? null, token };
}
