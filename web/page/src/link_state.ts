/** `<arp-link-state>`: the state of the connection as a word and a dot, with the transport in the title. */

import type { ArpClient } from "@agent-rendering/core";
import { CellController, createContext, type ArpContext } from "@agent-rendering/elements/chat";
import { html, LitElement, nothing, type TemplateResult } from "lit";

const NAMES = { websocket: "WebSocket", sse: "SSE" } as const;

export class ArpLinkState extends LitElement {
  static override properties = { client: { attribute: false }, context: { attribute: false } };

  declare client: ArpClient | null;
  declare context: ArpContext;
  readonly #cells = new CellController(this);

  constructor() {
    super();
    this.client = null;
    this.context = createContext();
  }

  protected override createRenderRoot(): this {
    return this;
  }

  protected override willUpdate(): void {
    this.#cells.observe(...(this.client === null ? [] : [this.client.store.status]));
  }

  protected override render(): TemplateResult {
    const { t } = this.context;
    const { phase = "idle", transport = null, attempt = 0 } = this.client?.store.status.get() ?? {};
    const word =
      phase === "online"
        ? t("connected")
        : phase === "waiting" || (phase === "connecting" && attempt > 0)
          ? t("reconnecting")
          : phase === "connecting"
            ? t("connecting")
            : t("notConnected");
    const title = phase === "online" && transport !== null ? `${word} · ${NAMES[transport]}` : word;
    return html`<p class="page-link" data-phase=${phase} title=${title}><span class="page-dot" aria-hidden="true"></span><span>${word}</span>${phase === "online" && transport === "sse" ? html`<span class="page-way">SSE</span>` : nothing}</p>`;
  }
}

customElements.define("arp-link-state", ArpLinkState);
