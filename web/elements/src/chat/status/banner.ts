/** `<arp-banner>`: the problem with the connection, and a button, link or field to restore it. */

import type { ArpClient, Status } from "@agent-rendering/core";
import { html, nothing } from "lit";

import { createContext, type ArpContext } from "../../base/context.js";
import { ArpElement, define } from "../../base/element.js";
import { sentence } from "../../base/wrong.js";
import { icon } from "../icons.js";

/** Time after which a first attempt to connect is shown. */
const PATIENCE_MS = 1500;
const SESSION_NOT_FOUND = 8;
const PERMISSION_DENIED = 15;
export const UNAUTHENTICATED = 14;

/** Sign-in for readers whom the server refuses. */
export interface SignIn {
  /** Text beside the link; `null` means the built-in one. */
  readonly text: string | null;
  /** Address of the sign-in; `null` shows no link. */
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
  /** Whether the reader entered a token; if the server asks again, it has refused that token. */
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

  /** Whether the server refuses the reader until they sign in. */
  get #wantsUser(): boolean {
    const { phase, refusal } = this.status ?? {};
    return phase === "refused" && (refusal?.code === UNAUTHENTICATED || refusal?.code === PERMISSION_DENIED);
  }

  /** Whether a token is enough to be let in. */
  get #wantsToken(): boolean {
    return this.#wantsUser && this.signIn === null && this.status?.refusal?.code === UNAUTHENTICATED;
  }

  #tokenForm(line: string): unknown {
    void import("./token_form.js").catch(() => undefined); // the line in the banner still says what is missing
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
    if (phase === "idle" && reason !== null) return t("offline"); // the last attempt failed
    if (phase !== "connecting") return null;
    if (attempt > 0) return t("noConnection"); // it was lost, or an attempt failed
    return Date.now() - this.#since > PATIENCE_MS ? t("connecting") : null;
  }

  #tick(wanted: boolean): void {
    if (wanted === (this.#timer !== null)) return;
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = wanted ? setInterval(() => this.requestUpdate(), 1000) : null;
  }
}

define("arp-banner", ArpBanner);
