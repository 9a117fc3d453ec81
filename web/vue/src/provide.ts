/** What components below a provider share: the client, and components of the application's own. */

import { type ArpCapabilities, type ArpClient, type Status, type TurnState } from "@agent-rendering/core";
import {
  computed,
  inject,
  provide,
  toValue,
  type Component,
  type ComputedRef,
  type InjectionKey,
  type MaybeRef,
  type MaybeRefOrGetter,
  type ShallowRef,
} from "vue";
import { fixed } from "../../bindings/src/cells.js";
import type { OwnComponentProps } from "../../bindings/src/own_components.js";
import { capabilitiesOf, IDLE_CELL } from "../../bindings/src/status.js";
import { useCell } from "./cell.js";

/** Props that a component of your own gets besides the agent's; declare those that you want. */
export interface ArpComponentProps extends OwnComponentProps {}

/** Components of your own by type. They may emit `input` with a text, `answer` with a value, `action` with a name. */
export type ArpComponents = { readonly [type: string]: Component };

// The draft's keys; what is after them may be a ref: read it with `unref`.
export const ArpComponentsKey: InjectionKey<MaybeRef<ArpComponents>> = Symbol("arp-components");
export const ArpConnectedKey: InjectionKey<MaybeRef<boolean>> = Symbol("arp-connected");
export const ArpCapabilitiesKey: InjectionKey<MaybeRef<ArpCapabilities | null>> = Symbol("arp-capabilities");
export const ArpClientKey: InjectionKey<MaybeRef<ArpClient | null>> = Symbol("arp-client");

const NO_COMPONENTS: ArpComponents = {};

/** Provides a client, its state, and own components to all below. */
export function provideArp(
  client: MaybeRefOrGetter<ArpClient | null>,
  components: MaybeRefOrGetter<ArpComponents | undefined>,
): void {
  const status = useArpStatus(() => toValue(client));
  provide(
    ArpClientKey,
    computed(() => toValue(client)),
  );
  provide(
    ArpComponentsKey,
    computed(() => toValue(components) ?? NO_COMPONENTS),
  );
  provide(
    ArpConnectedKey,
    computed(() => status.value.phase === "online"),
  );
  provide(
    ArpCapabilitiesKey,
    computed(() => capabilitiesOf(status.value)),
  );
}

/** The client of the nearest provider; `null` on the server. */
export function useArpClient(): ComputedRef<ArpClient | null> {
  const shared = inject(ArpClientKey, null);
  return computed(() => toValue(shared));
}

/** Own components of the nearest provider, with those of `more` over them. */
export function useComponents(more: () => ArpComponents | undefined): ComputedRef<ArpComponents> {
  const shared = inject(ArpComponentsKey, NO_COMPONENTS);
  return computed(() => ({ ...toValue(shared), ...more() }));
}

type Given = MaybeRefOrGetter<ArpClient | null>;

/** The connection and the session, of a client or of the nearest provider's. */
export function useArpStatus(client: Given = useArpClient()): Readonly<ShallowRef<Status>> {
  return useCell(() => toValue(client)?.store.status ?? IDLE_CELL);
}

/** Ids of the turns, oldest first. */
export function useArpTurnIds(client: Given = useArpClient()): Readonly<ShallowRef<readonly string[]>> {
  return useCell(() => toValue(client)?.store.turnIds ?? NO_IDS);
}

/** One turn; another value only when something in it changes. */
export function useArpTurn(
  id: MaybeRefOrGetter<string>,
  client: Given = useArpClient(),
): Readonly<ShallowRef<TurnState | undefined>> {
  return useCell(() => toValue(client)?.store.turn(toValue(id)) ?? NO_TURN);
}

const NO_IDS = fixed<readonly string[]>([]);
const NO_TURN = fixed<TurnState | undefined>(undefined);
