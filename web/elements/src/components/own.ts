/** The place of a component that the host draws itself; what its factory throws ends here. */

import { nothing } from "lit";
import { ComponentElement } from "../base/component_element.js";
import { define } from "../base/element.js";

/** `<arp-own>`: asks the registry. */
export class ArpOwn extends ComponentElement {
  protected override draw(): unknown {
    const { component, context } = this;
    const factory = component && context.registry?.get(component.type);
    return factory && component ? factory(component, context, this) : nothing;
  }
}

define("arp-own", ArpOwn);
