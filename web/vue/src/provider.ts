/** Provides a client, and own components, to all below. */

import type { ArpClient, ArpClientCallbacks } from "@agent-rendering/core";
import { computed, defineComponent, type PropType } from "vue";
import { offering } from "../../bindings/src/client_options.js";
import { provideArp, type ArpComponents } from "./provide.js";
import { useClient, type ClientOptions } from "./use_client.js";

const absent = { default: undefined } as const;

/** With `client`, or with `url` and the other options of a client in `options`. */
export const ArpProvider = defineComponent({
  name: "ArpProvider",
  props: {
    /** A client of your own; you connect it. */
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
