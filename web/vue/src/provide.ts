/** Injected values of the components below a provider: the client and the custom components. */

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

/** Props of a custom component in addition to the agent's. Vue passes only those that the component declares. */
export interface ArpComponentProps extends OwnComponentProps {}

/** Custom components by type. They may emit `input` with a text, `answer` with a value, `action` with a name. */
export type ArpComponents = { readonly [type: string]: Component };

// Keys of the draft. A value may be a ref: read it with `unref`.
export const ArpComponentsKey: InjectionKey<MaybeRef<ArpComponents>> = Symbol("arp-components");
export const ArpConnectedKey: InjectionKey<MaybeRef<boolean>> = Symbol("arp-connected");
export const ArpCapabilitiesKey: InjectionKey<MaybeRef<ArpCapabilities | null>> = Symbol("arp-capabilities");
export const ArpClientKey: InjectionKey<MaybeRef<ArpClient | null>> = Symbol("arp-client");

const NO_COMPONENTS: ArpComponents = {};

/** Provide a client, its state and custom components to all components below. */
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

/** Return the client of the nearest provider; `null` on the server. */
export function useArpClient(): ComputedRef<ArpClient | null> {
  const shared = inject(ArpClientKey, null);
  return computed(() => toValue(shared));
}

/** Return the custom components of the nearest provider; those of `more` replace them. */
export function useComponents(more: () => ArpComponents | undefined): ComputedRef<ArpComponents> {
  const shared = inject(ArpComponentsKey, NO_COMPONENTS);
  return computed(() => ({ ...toValue(shared), ...more() }));
}

type Given = MaybeRefOrGetter<ArpClient | null>;

/** Return the status of connection and session, by default of the nearest provider's client. */
export function useArpStatus(client: Given = useArpClient()): Readonly<ShallowRef<Status>> {
  return useCell(() => toValue(client)?.store.status ?? IDLE_CELL);
}

/** Return the ids of the turns, oldest first. */
export function useArpTurnIds(client: Given = useArpClient()): Readonly<ShallowRef<readonly string[]>> {
  return useCell(() => toValue(client)?.store.turnIds ?? NO_IDS);
}

/** Return one turn. The value changes only when something in the turn changes. */
export function useArpTurn(
  id: MaybeRefOrGetter<string>,
  client: Given = useArpClient(),
): Readonly<ShallowRef<TurnState | undefined>> {
  return useCell(() => toValue(client)?.store.turn(toValue(id)) ?? NO_TURN);
}

const NO_IDS = fixed<readonly string[]>([]);
const NO_TURN = fixed<TurnState | undefined>(undefined);
