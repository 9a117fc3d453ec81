/** Properties of custom elements. */

export interface Properties {
  readonly [name: string]: unknown;
}

/** Set the properties that changed. Properties that are `undefined` keep the element's default. */
export function setProperties(element: HTMLElement, properties: Properties): void {
  const target = element as unknown as { [name: string]: unknown };
  for (const [name, value] of Object.entries(properties)) {
    if (value !== undefined && !Object.is(target[name], value)) target[name] = value;
  }
}
