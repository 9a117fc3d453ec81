/** `<arp-banner>`: what is wrong with the connection, and the way back. It says so once, and counts silently. */

import type { ArpClient, Status } from "@agent-rendering/core";
import { html, nothing } from "lit";

import { createContext, type ArpContext } from "../../base/context.js";
import { ArpElement, define } from "../../base/element.js";
import { sentence } from "../../base/wrong.js";
import { icon } from "../icons.js";

/** A connection that is being made for the first time is no news for so long. */
const PATIENCE_MS = 1500;
const SESSION_NOT_FOUND = 8;
const PERMISSION_DENIED = 15;
export const UNAUTHENTICATED = 14;

/** How a reader signs in who is not let in. */
export interface SignIn {
  /** What to say; `null` is a text of ours. */
  readonly text: string | null;
  /** Where to; `null`: nowhere. */
  readonly href: string | null;
}

export class ArpBanner extends ArpElement {
  static override properties = {
    status: { attribute: false },
    client: { attribute: false },
    context: { attribute: false },
    signIn: { attribute: false },
  };

  declare status: Status | null;
  declare client: ArpClient | null;
  declare context: ArpContext;
  declare signIn: SignIn | null;
  #timer: ReturnType<typeof setInterval> | null = null;
  #since = 0;
  /** Whether a token was entered, which the server refuses if it asks for one again. */
  #hasEntered = false;

  constructor() {
    super();
    this.status = this.client = this.signIn = null;
    this.context = createContext();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#tick(false);
  }

  protected override render(): unknown {
    const { status } = this;
    const phase = status?.phase ?? "idle";
    if (phase === "connecting" && this.#since === 0) this.#since = Date.now();
    if (phase === "online") this.#since = 0;
    this.#tick(phase === "waiting" || phase === "connecting");
    const line = status === null ? null : this.#line(status);
    if (line === null) return nothing;
    if (this.#wantsToken) return this.#tokenForm(line);
    return html`<div class="arp-banner" data-phase=${phase}>
      ${icon(phase === "refused" ? "alert" : "offline")}<span>${line}</span>
      ${this.#wantsUser && this.signIn?.href ? html`<a class="arp-button arp-soft" href=${this.signIn.href}>${this.context.t("signIn")}</a>` : phase === "connecting" ? nothing : html`<button type="button" class="arp-button arp-soft" @click=${() => this.client?.connect()}>${this.context.t("retry")}</button>`}
    </div>`;
  }

  /** Whether the server lets nobody in, or nobody any more, who is not signed in. */
  get #wantsUser(): boolean {
    const { phase, refusal } = this.status ?? {};
    return phase === "refused" && (refusal?.code === UNAUTHENTICATED || refusal?.code === PERMISSION_DENIED);
  }

  /** Whether a token is all that the server asks for. */
  get #wantsToken(): boolean {
    return this.#wantsUser && this.signIn === null && this.status?.refusal?.code === UNAUTHENTICATED;
  }

  #tokenForm(line: string): unknown {
    void import("./token_form.js").catch(() => undefined); // the line says what is missing
    return html`<div class="arp-banner" data-phase="refused" @arp-token=${() => (this.#hasEntered = true)}>
      ${icon("shield")}<span>${line}</span>
      <arp-token-form .context=${this.context} .isRefused=${this.#hasEntered}></arp-token-form>
    </div>`;
  }

  #line({ phase, attempt, retryAt, reason, refusal }: Status): string | null {
    const { t } = this.context;
    if (phase === "refused") {
      if (this.#wantsUser && this.signIn !== null) return this.signIn.text ?? t("signInNeeded");
      if (refusal?.code === UNAUTHENTICATED) return t("needsToken");
      if (refusal?.code === SESSION_NOT_FOUND) return t("noSuchChat");
      if (refusal?.detail === "workflow") return t("noSuchAgent");
      return `${t("refused")} ${(refusal && t.problem(refusal.code)) ?? ""} ${sentence(refusal?.error ?? "")}`;
    }
    if (phase === "waiting") {
      const seconds = Math.max(0, Math.ceil(((retryAt ?? Date.now()) - Date.now()) / 1000));
      return t("connectionLost", { attempt, seconds });
    }
    if (phase === "idle" && reason !== null) return t("offline"); // after the last try
    if (phase !== "connecting") return null;
    if (attempt > 0) return t("noConnection"); // there was one, or a try has failed
    return Date.now() - this.#since > PATIENCE_MS ? t("connecting") : null;
  }

  #tick(wanted: boolean): void {
    if (wanted === (this.#timer !== null)) return;
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = wanted ? setInterval(() => this.requestUpdate(), 1000) : null;
  }
}

define("arp-banner", ArpBanner);
