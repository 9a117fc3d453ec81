/** `group`, `tabs` and `split`: components that contain components. */

import type { Component, JsonObject } from "@agent-rendering/core";
import { html, nothing, type PropertyDeclarations, type PropertyValues } from "lit";
import type { ArpContext } from "../base/context.js";
import { ComponentElement } from "../base/component_element.js";
import { define } from "../base/element.js";
import { givenIcon } from "../base/icons.js";
import { styled } from "../base/styled.js";
import { tabList } from "../base/tablist.js";
import { components, freshId, isComponent, objects, oneOf, text, whole } from "../base/values.js";
import { renderComponent, renderComponents } from "./render.js";

/** Deepest level that is drawn. The protocol allows three, so deeper components came from elsewhere, such as a file. */
const DEEPEST = 8;

/** A component that contains others. */
abstract class LayoutElement extends ComponentElement {
  #inner: ArpContext | null = null;
  #outer: ArpContext | null = null;

  /** Context of the contained components: the same object as long as `context` is, or each of them would be redrawn. */
  protected get inner(): ArpContext {
    if (this.#inner === null || this.#outer !== this.context) {
      this.#outer = this.context;
      this.#inner = { ...this.context, depth: this.context.depth + 1 };
    }
    if (this.#inner.depth > DEEPEST) throw new RangeError("nested too deeply");
    return this.#inner;
  }
}

/** `<arp-group>`: a row or a column. */
export class ArpGroup extends LayoutElement {
  protected override draw({ children, direction, gap }: JsonObject): unknown {
    const kind = oneOf(direction, ["vertical", "horizontal"]);
    const space = oneOf(gap, ["medium", "none", "small", "large"]);
    this.hidden = components(children).length === 0; // such as the placeholder of a popup, which is shown elsewhere
    return html`<div class="arp-group" data-direction=${kind} data-gap=${space}>${renderComponents(components(children), this.inner)}</div>`;
  }
}

/** `<arp-tabs>`: shows one tab at a time. Opening a tab opens it in all renderers of the session. */
export class ArpTabs extends LayoutElement {
  static override properties: PropertyDeclarations = { chosen: { state: true } };

  /** Index of the tab that was opened here, until the agent side echoes it. */
  declare chosen: number | null;
  readonly #id = freshId("tabs");

  constructor() {
    super();
    this.chosen = null;
  }

  protected override willUpdate(changed: PropertyValues): void {
    const before = changed.get("component") as Component | null | undefined;
    if (before && before.props.active_tab !== this.component?.props.active_tab) this.chosen = null;
  }

  protected override draw({ tabs, active_tab: given }: JsonObject): unknown {
    const shown = objects(tabs);
    if (shown.length === 0) return nothing;
    const active = Math.min(this.chosen ?? whole(given, 0, shown.length - 1, 0), shown.length - 1);
    const { component } = shown[active] as JsonObject;
    const face = ({ label, icon }: JsonObject) => {
      const sign = givenIcon(text(icon));
      return html`${sign === "" ? nothing : html`<span class="arp-option-icon" aria-hidden="true">${sign}</span>`}<span dir="auto">${text(label)}</span>`;
    };
    return html`<div class="arp-tabbed arp-tabs">
      ${tabList({ id: this.#id, label: this.t("tabs"), tabs: shown.map(face), active, choose: (at) => this.#choose(at, active) })}
      <div role="tabpanel" id="${this.#id}-panel" aria-labelledby="${this.#id}-tab-${active}">
        ${isComponent(component) ? renderComponents([component], this.inner) : nothing}
      </div>
    </div>`;
  }

  #choose(at: number, active: number): void {
    if (at === active || this.component === null) return;
    this.chosen = at;
    this.context.answer(this.component, at);
  }
}

/** Share of the whole that an arrow key moves the divider by. */
const STEP = 0.05;

/** `<arp-split>`: two components with a divider that can be moved. In a narrow place the style sheet stacks them. */
export class ArpSplit extends LayoutElement {
  static override properties: PropertyDeclarations = { moved: { state: true } };

  /** Share of the first part, from 0.1 to 0.9, after the reader moved the divider; `null` before that. */
  declare moved: number | null;
  readonly #id = freshId("split");

  constructor() {
    super();
    this.moved = null;
  }

  protected override draw({ left, right, direction, ratio }: JsonObject): unknown {
    const kind = oneOf(direction, ["horizontal", "vertical"]);
    const part = this.moved ?? partOf(text(ratio));
    const side = (given: unknown) => (isComponent(given) ? renderComponent(given, this.inner) : nothing);
    return html`<div class="arp-split" data-direction=${kind} ${styled({ "--_arp-part": String(part) })}>
      <div class="arp-split-part" id="${this.#id}-first">${side(left)}</div>
      <div
        class="arp-divider" role="separator" tabindex="0" aria-label=${this.t("divider")} aria-controls="${this.#id}-first"
        aria-orientation=${kind === "horizontal" ? "vertical" : "horizontal"} aria-valuenow=${Math.round(part * 100)} aria-valuemin="10" aria-valuemax="90"
        @keydown=${(event: KeyboardEvent) => this.#key(event, part)} @pointerdown=${this.#grab}
      ></div>
      <div class="arp-split-part">${side(right)}</div>
    </div>`;
  }

  #key(event: KeyboardEvent, part: number): void {
    const isMirrored = getComputedStyle(this).direction === "rtl";
    const more = isMirrored ? "ArrowLeft" : "ArrowRight";
    const step = {
      [more]: STEP,
      [more === "ArrowRight" ? "ArrowLeft" : "ArrowRight"]: -STEP,
      ArrowDown: STEP,
      ArrowUp: -STEP,
    }[event.key];
    const next = event.key === "Home" ? 0.1 : event.key === "End" ? 0.9 : step === undefined ? null : part + step;
    if (next === null) return;
    event.preventDefault();
    this.#move(next);
  }

  #move(part: number): void {
    this.moved = Math.round(Math.min(0.9, Math.max(0.1, part)) * 100) / 100;
  }

  readonly #grab = (event: PointerEvent): void => {
    const divider = event.currentTarget as HTMLElement;
    const frame = divider.parentElement as HTMLElement;
    divider.setPointerCapture(event.pointerId);
    const follow = ({ clientX, clientY }: PointerEvent) => {
      const { left, top, width, height } = frame.getBoundingClientRect();
      const isRow = getComputedStyle(frame).flexDirection.startsWith("row");
      const along = isRow ? (clientX - left) / width : (clientY - top) / height;
      this.#move(isRow && getComputedStyle(frame).direction === "rtl" ? 1 - along : along);
    };
    divider.addEventListener("pointermove", follow);
    divider.addEventListener("lostpointercapture", () => divider.removeEventListener("pointermove", follow), {
      once: true,
    });
    event.preventDefault();
    divider.focus();
  };
}

/** Return the share of the first part in a ratio such as `1:2`, limited to 0.1 to 0.9; 0.5 if it is not a ratio. */
export function partOf(ratio: string): number {
  const [, first, second] = /^\s*(\d+(?:\.\d+)?)\s*:\s*(\d+(?:\.\d+)?)\s*$/.exec(ratio) ?? [];
  const sum = Number(first) + Number(second);
  return sum > 0 ? Math.min(0.9, Math.max(0.1, Number(first) / sum)) : 0.5;
}

define("arp-group", ArpGroup);
define("arp-tabs", ArpTabs);
define("arp-split", ArpSplit);
