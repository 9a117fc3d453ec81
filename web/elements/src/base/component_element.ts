/**
 * The base of all elements that draw a component. An error while a component is drawn ends in one card in its
 * place, and the rest continues. Pages load this after the chat itself.
 */

import { questionState, type Component, type JsonObject } from "@agent-rendering/core";
import { html, nothing, render, type PropertyDeclarations, type PropertyValues } from "lit";
import { NOWHERE, showsRecording, type ArpContext, type Translate } from "./context.js";
import { ArpElement } from "./element.js";
import { icon } from "./icons.js";
import "../style/content.js";

/** Draws one component. */
export abstract class ComponentElement extends ArpElement {
  static override properties: PropertyDeclarations = {
    component: { attribute: false },
    context: { attribute: false },
  };

  /** What is drawn; nothing until it is set. */
  declare component: Component | null;
  /** Where it is drawn. */
  declare context: ArpContext;
  #failure: { readonly error: unknown } | null = null;

  constructor() {
    super();
    this.component = null;
    this.context = NOWHERE;
  }

  get t(): Translate {
    return this.context.t;
  }

  /** Whether it is a question that waits for its answer, from anyone who looks at it. */
  get open(): boolean {
    return this.component !== null && questionState(this.component) === "open" && !showsRecording(this.context.client);
  }

  /** What shows, given the props of the component, which may have any shape. */
  protected abstract draw(props: JsonObject): unknown;

  /** Called after each drawing, for what needs layout. */
  protected drawn(_changed: PropertyValues): void {}

  protected override render(): unknown {
    return this.component === null ? nothing : this.draw(this.component.props);
  }

  protected override performUpdate(): void {
    if (!this.isUpdatePending) return; // drawn already, by who could not wait: what failed then stays
    const hadFailed = this.#failure !== null;
    if (hadFailed) this.#clear();
    try {
      super.performUpdate();
      if (hadFailed && this.component) this.context.present(this.component, "native");
    } catch (error) {
      this.#fail(error);
    }
  }

  protected override update(changed: PropertyValues): void {
    this.dataset.type = this.component?.type ?? "";
    super.update(changed);
  }

  protected override updated(changed: PropertyValues): void {
    this.drawn(changed);
  }

  #fail(error: unknown): void {
    this.#clear();
    this.#failure = { error };
    if (this.component) this.context.present(this.component, "failed");
    render(failureCard(this.context, this.component, error), this);
    this.dispatchEvent(
      new CustomEvent("arp-failed", { bubbles: true, composed: true, detail: { component: this.component, error } }),
    );
  }

  /** Forgets what Lit drew here: after an error in the middle it cannot be trusted. */
  #clear(): void {
    this.#failure = null;
    this.replaceChildren();
    delete (this as { _$litPart$?: unknown })._$litPart$;
  }

  /** Sends an action of this component. */
  protected act(name: string, payload?: unknown): void {
    if (this.component === null) return;
    this.context.action(this.component, name, payload);
    this.dispatchEvent(
      new CustomEvent("arp-action", {
        bubbles: true,
        composed: true,
        detail: { component: this.component, name, payload },
      }),
    );
  }
}

/** Shown in the place of a component that could not be drawn. */
export function failureCard({ t }: ArpContext, component: Component | null, error: unknown): unknown {
  return html`<section class="arp-card arp-failure">
    <p>${icon("warning")}<span>${t("cannotShow")}</span></p>
    <details>
      <summary>${t("details")}</summary>
      <pre tabindex="0" dir="ltr" aria-label=${t("details")}>${component?.type ?? ""}: ${error instanceof Error ? error.message : String(error)}</pre>
    </details>
  </section>`;
}
