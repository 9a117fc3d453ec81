/** A client with the lifetime of a component. */

import { ArpClient, type ArpClientCallbacks, type ArpClientOptions } from "@agent-rendering/core";
import { useEffect, useState } from "react";
import { defined, type SharedClientOptions } from "../../bindings/src/client_options.js";
import { useLatest } from "./cell.js";

/** Options of the client, and whether it connects by itself. */
export interface ClientOptions extends SharedClientOptions {
  /** `ws://HOST/_arp/v1`, or `http://HOST` with the prefix of a mount. */
  url: string;
  /** Id of the session; a new value switches to that session. Without it the server creates a new session. */
  sessionId?: string | null | undefined;
}

/** Options that lead to a new client when they change. Changes of the other options have no effect. */
const IDENTITY = ["url", "transport", "maxReconnectAttempts", "WebSocket", "fetch", "storage", "schedule"] as const;

const CALLBACKS = {
  onConnect: true,
  onDisconnect: true,
  onDelta: true,
  onThinking: true,
  onToolStart: true,
  onToolProgress: true,
  onToolEnd: true,
  onRender: true,
  onError: true,
  onDone: true,
  onMessage: true,
} as const satisfies { [Name in keyof Required<ArpClientCallbacks>]: true };

interface Made {
  readonly key: readonly unknown[];
  readonly client: ArpClient | null;
}

/**
 * Return a client that connects when the component is mounted and disconnects when it is unmounted. Return `null` on
 * the server and if `options` is `null`.
 */
export function useClient(options: ClientOptions | null, callbacks: ArpClientCallbacks = {}): ArpClient | null {
  const latest = useLatest({ options, callbacks });
  const key = options === null ? [] : IDENTITY.map((name) => options[name]);
  const make = (): Made => {
    if (options === null || typeof document === "undefined") return { key, client: null };
    const token = () => {
      const { token: given = null } = latest.current.options ?? options;
      return typeof given === "function" ? given() : given;
    };
    return {
      key,
      client: new ArpClient(
        { ...present(options), token },
        relay(() => latest.current.callbacks),
      ),
    };
  };
  const [made, setMade] = useState(make);
  let { client } = made;
  if (!same(made.key, key)) {
    const next = make();
    setMade(next);
    client = next.client;
  }

  const { autoConnect = true, sessionId } = options ?? {};
  useEffect(() => {
    if (autoConnect) client?.connect();
    return () => client?.disconnect();
  }, [client, autoConnect]);
  useEffect(() => {
    if (sessionId !== undefined) client?.setSessionId(sessionId);
  }, [client, sessionId]);
  return client;
}

/** Return callbacks that call the current ones: those of the latest render. */
function relay(now: () => ArpClientCallbacks): ArpClientCallbacks {
  const names = Object.keys(CALLBACKS) as (keyof ArpClientCallbacks)[];
  const call = (name: keyof ArpClientCallbacks) => {
    return (...given: unknown[]) => (now()[name] as ((...given: unknown[]) => void) | undefined)?.(...given);
  };
  return Object.fromEntries(names.map((name) => [name, call(name)]));
}

/** Return the options of the core's client, without those that are `undefined`. */
function present({ autoConnect: _, ...options }: ClientOptions): ArpClientOptions {
  return defined(options) as ArpClientOptions;
}

function same(one: readonly unknown[], other: readonly unknown[]): boolean {
  return one.length === other.length && one.every((item, at) => Object.is(item, other[at]));
}
