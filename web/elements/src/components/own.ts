/** Place of a component that the host page draws. If its factory throws, the failure card is shown here. */

import { nothing } from "lit";
import { ComponentElement } from "../base/component_element.js";
import { define } from "../base/element.js";

/** `<arp-own>`: calls the factory from the registry. */
export class ArpOwn extends ComponentElement {
  protected override draw(): unknown {
    const { component, context } = this;
    const factory = component && context.registry?.get(component.type);
    return factory && component ? factory(component, context, this) : nothing;
  }
}

define("arp-own", ArpOwn);
