/** Any component as one element, for pages that do not use Lit templates. */

import { ComponentElement } from "../base/component_element.js";
import { define } from "../base/element.js";
import { renderComponent } from "./render.js";

/** `<arp-component>`: draws its `component`, of any type. */
export class ArpComponentElement extends ComponentElement {
  protected override draw(): unknown {
    return this.component && renderComponent(this.component, this.context);
  }
}

define("arp-component", ArpComponentElement);
