/** Options of a client, and the components that it offers to the server. */

import type { ArpClientOptions } from "@agent-rendering/core";
import { DRAWN } from "@agent-rendering/core/chat";

/** `T` with `undefined` allowed for each optional field. */
export type Loose<T> = { [Name in keyof T]: undefined extends T[Name] ? T[Name] | undefined : T[Name] };

/** Options that are the same in each framework. */
export interface SharedClientOptions extends Loose<Omit<ArpClientOptions, "url" | "sessionId">> {
  /** Whether the client connects when the component is mounted (default: true). */
  autoConnect?: boolean | undefined;
}

/** Additional features of `<arp-chat>`. */
export const CHAT_FEATURES = ["line-pause", "overlays"];

/** Return the fields that are not `undefined`. */
export function defined<T extends object>(fields: T): Loose<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Loose<T>;
}

/**
 * Return options that offer all components that can be drawn: those of the elements and the application's custom ones.
 * Without custom ones, `components` of the options is used if it is set.
 */
export function offering<Options extends object>(options: Options, own: object): Options {
  const types = Object.keys(own).filter((type) => !Object.hasOwn(DRAWN, type));
  if (types.length === 0 && (options as SharedClientOptions).components) return options;
  return { ...options, components: { ...DRAWN, ...Object.fromEntries(types.map((type) => [type, 1])) } };
}
