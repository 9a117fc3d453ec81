/** Sets the styles of an element property by property. A content security policy without inline styles permits this. */

import { noChange } from "lit";
import { directive, Directive, type ElementPart } from "lit/directive.js";

type Properties = { readonly [property: string]: string };

/** Directive that remembers which properties it has set, so that it removes only those. */
class Styled extends Directive {
  #set = new Set<string>();

  render(_properties: Properties): unknown {
    return noChange;
  }

  override update(part: ElementPart, [properties]: [Properties]): unknown {
    const { style } = part.element as HTMLElement;
    for (const name of this.#set) if (!Object.hasOwn(properties, name)) style.removeProperty(name);
    this.#set = new Set(Object.keys(properties));
    for (const [name, value] of Object.entries(properties)) style.setProperty(name, value);
    return noChange;
  }
}

/** Use as `<div ${styled({"--x": "1"})}>`. The keys are CSS names; properties that are absent later are removed. */
export const styled = directive(Styled);
