/** One client for as long as a component is there. */

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

/** What a client is made with, and whether it connects by itself. */
export interface ClientOptions extends SharedClientOptions {
  /** `ws://HOST/_arp/v1`, or `http://HOST` with the prefix of a mount; another one takes another client. */
  url: MaybeRefOrGetter<string>;
  /** The session; a new value turns to it. Without it the server makes a new one. */
  sessionId?: MaybeRefOrGetter<string | null | undefined>;
}

/**
 * A client that connects when the component is there and disconnects when it has gone; `null` on
 * the server and while `options` gives `null`. Outside of a component it connects at once.
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
  let isThere = false;
  const come = () => {
    isThere = true;
    if (options()?.autoConnect ?? true) client.value?.connect();
  };
  watch([address, () => options()?.transport], () => {
    client.value?.disconnect();
    client.value = make();
    if (isThere) come();
  });
  watch(session, (id) => {
    if (id !== undefined) client.value?.setSessionId(id);
  });
  if (getCurrentInstance()) onMounted(come);
  else come();
  onScopeDispose(() => client.value?.disconnect());
  return client;
}

/** Options without those that are `undefined`. */
function resolved(options: ClientOptions, url: string, session: string | null | undefined): ArpClientOptions {
  const { autoConnect: _, token: __, ...rest } = options;
  const token = () => (typeof options.token === "function" ? options.token() : (options.token ?? null));
  return { ...(defined(rest) as object), url, sessionId: session ?? null, token };
}
