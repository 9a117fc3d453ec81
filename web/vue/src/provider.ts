/** A component that provides a client and custom components to all components below. */

import type { ArpClient, ArpClientCallbacks } from "@agent-rendering/core";
import { computed, defineComponent, type PropType } from "vue";
import { offering } from "../../bindings/src/client_options.js";
import { provideArp, type ArpComponents } from "./provide.js";
import { useClient, type ClientOptions } from "./use_client.js";

const absent = { default: undefined } as const;

/** Provides `client`, or a client that is created for `url` with further `options`. */
export const ArpProvider = defineComponent({
  name: "ArpProvider",
  props: {
    /** An existing client, which the application connects. */
    client: { type: Object as PropType<ArpClient | null>, ...absent },
    url: { type: String, ...absent },
    sessionId: { type: String as PropType<string | null>, ...absent },
    options: { type: Object as PropType<Partial<ClientOptions>>, ...absent },
    callbacks: { type: Object as PropType<ArpClientCallbacks>, ...absent },
    components: { type: Object as PropType<ArpComponents>, ...absent },
  },
  setup(props, { slots }) {
    const own = useClient(() => {
      const { client, url, options, components = {} } = props;
      if (client !== undefined || url === undefined) return null;
      return offering({ ...options, url, sessionId: () => props.sessionId }, components);
    }, props.callbacks);
    provideArp(
      computed(() => props.client ?? own.value),
      () => props.components,
    );
    return () => slots.default?.();
  },
});
