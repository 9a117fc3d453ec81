/**
 * The base of all elements that draw a component. If drawing a component throws, a failure card takes its place and
 * the rest of the page is not affected. Pages load this module after the chat itself.
 */

import { questionState, type Component, type JsonObject } from "@agent-rendering/core";
import { html, nothing, render, type PropertyDeclarations, type PropertyValues } from "lit";
import { NOWHERE, showsRecording, type ArpContext, type Translate } from "./context.js";
import { ArpElement } from "./element.js";
import { icon } from "./icons.js";
import "../style/content.js";

/** Element that draws one component; subclasses return its content from `draw`. */
export abstract class ComponentElement extends ArpElement {
  static override properties: PropertyDeclarations = {
    component: { attribute: false },
    context: { attribute: false },
  };

  /** Component to draw; the element is empty until it is set. */
  declare component: Component | null;
  /** Environment of the component. */
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

  /** Whether the component is an open question that can be answered in this renderer; a recording takes no answers. */
  get open(): boolean {
    return this.component !== null && questionState(this.component) === "open" && !showsRecording(this.context.client);
  }

  /** Return the content as a template. The props come from an agent and may have any shape. */
  protected abstract draw(props: JsonObject): unknown;

  /** Called after each drawing, for work that needs the layout. */
  protected drawn(_changed: PropertyValues): void {}

  protected override render(): unknown {
    return this.component === null ? nothing : this.draw(this.component.props);
  }

  protected override performUpdate(): void {
    // `drawAll` may have drawn this element already. Without this check, the update that Lit scheduled for it would
    // remove the failure card and leave the place empty.
    if (!this.isUpdatePending) return;
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

  /** Remove all content, and Lit's record of it: after an error in the middle of drawing the two may not match. */
  #clear(): void {
    this.#failure = null;
    this.replaceChildren();
    delete (this as { _$litPart$?: unknown })._$litPart$;
  }

  /** Send an action of this component, and dispatch it as the event `arp-action`. */
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

/** Return the card that takes the place of a component that could not be drawn. */
export function failureCard({ t }: ArpContext, component: Component | null, error: unknown): unknown {
  return html`<section class="arp-card arp-failure">
    <p>${icon("warning")}<span>${t("cannotShow")}</span></p>
    <details>
      <summary>${t("details")}</summary>
      <pre tabindex="0" dir="ltr" aria-label=${t("details")}>${component?.type ?? ""}: ${error instanceof Error ? error.message : String(error)}</pre>
    </details>
  </section>`;
}
