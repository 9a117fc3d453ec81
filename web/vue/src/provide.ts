/** What components below a provider share: the client, and components of the application's own. */

import {
  type ArpCapabilities,
  type ArpClient,
  type Component as ArpComponent,
  type Json,
  type Status,
  type TurnState,
} from "@agent-rendering/core";
import { DRAWN } from "@agent-rendering/core/chat";
import type { ArpContext } from "@agent-rendering/elements/components";
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
import { fixed, useCell } from "./cell.js";
import type { ClientOptions } from "./use_client.js";

/** What a component of your own is given besides the agent's props; declare those that you want. */
export interface ArpComponentProps {
  /** As the agent side sent it, with `id` and `type`. */
  component: ArpComponent;
  /** Texts, theme, the client. */
  context: ArpContext;
  /** Answers a question, once. */
  answer: (value: Json) => void;
  /** Sends an action of this component. */
  action: (name: string, payload?: unknown) => void;
  /** It can no longer be answered. */
  _restored: boolean;
}

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

/** Options of a client that says what is drawn: all that the elements draw, and the application's own. */
export function offering(options: Partial<ClientOptions>, own: ArpComponents): ClientOptions {
  const types = Object.keys(own).filter((type) => !Object.hasOwn(DRAWN, type));
  if (types.length === 0 && options.components) return options as ClientOptions;
  const components = { ...DRAWN, ...Object.fromEntries(types.map((type) => [type, 1])) };
  return { ...(options as ClientOptions), components };
}

/** What the agent side can do, with nothing absent. */
export function capabilitiesOf({ capabilities }: Status): ArpCapabilities | null {
  return capabilities && { features: [], ...capabilities };
}

/** What a client is before it connects. */
const IDLE_CELL = fixed<Status>({
  phase: "idle",
  transport: null,
  attempt: 0,
  retryAt: null,
  reason: null,
  refusal: null,
  sessionId: null,
  loading: true,
  stale: false,
  capabilities: null,
  commands: [],
  activeTurn: null,
});
const NO_IDS = fixed<readonly string[]>([]);
const NO_TURN = fixed<TurnState | undefined>(undefined);
