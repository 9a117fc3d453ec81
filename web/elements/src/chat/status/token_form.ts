/** `<arp-token-form>`: a field for an access token. Loaded when a server asks for a token. */

import { html, nothing } from "lit";

import { createContext, type ArpContext } from "../../base/context.js";
import { ArpElement, define } from "../../base/element.js";
import { freshId } from "../../base/values.js";

/** Return the token in a pasted text: the value of `token=` in an address, or else the whole text. */
export function tokenIn(text: string): string {
  const bare = text.trim();
  const at = bare.search(/(?<=[#?&])token=/);
  return (at < 0 ? null : new URLSearchParams(bare.slice(at)).get("token")) ?? bare;
}

/** Dispatches `arp-token` with `{token}` when the reader has entered a token. */
export class ArpTokenForm extends ArpElement {
  static override properties = { context: { attribute: false }, isRefused: { attribute: false } };

  declare context: ArpContext;
  /** Whether the server has refused a token that was entered here. */
  declare isRefused: boolean;
  readonly #id = freshId("token");

  constructor() {
    super();
    this.context = createContext();
    this.isRefused = false;
  }

  protected override render(): unknown {
    const { t } = this.context;
    return html`<form class="arp-token" @submit=${this.#submit}>
      <label class="arp-hidden" for=${this.#id}>${t("token")}</label>
      <input class="arp-input" id=${this.#id} type="password" dir="ltr" required autocomplete="off" spellcheck="false" placeholder=${t("tokenHint")}
        aria-invalid=${this.isRefused ? "true" : nothing} aria-describedby=${this.isRefused ? `${this.#id}-wrong` : nothing} />
      <button type="submit" class="arp-button">${t("connect")}</button>
      ${this.isRefused ? html`<p class="arp-bad" role="alert" id="${this.#id}-wrong">${t("tokenRefused")}</p>` : nothing}
    </form>`;
  }

  protected override firstUpdated(): void {
    const active = document.activeElement;
    const isFree =
      active === null || active === document.body || (active instanceof HTMLTextAreaElement && active.value === "");
    // On a touch screen the focus would open a keyboard over half of the page, before the reader asks for it.
    if (isFree && !matchMedia("(pointer: coarse)").matches) this.querySelector("input")?.focus();
  }

  #submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const token = tokenIn(this.querySelector("input")?.value ?? "");
    if (token !== "")
      this.dispatchEvent(new CustomEvent("arp-token", { detail: { token }, bubbles: true, composed: true }));
  };
}

define("arp-token-form", ArpTokenForm);
