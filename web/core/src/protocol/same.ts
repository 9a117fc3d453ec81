/** Keep the old object of a list while its items are the same, so that its readers see no change. */

/** Return the old list if the new one has the same items in the same order, otherwise the new one. */
export function sameList<T>(
  before: readonly T[],
  items: readonly T[],
  isSame: (one: T, other: T) => boolean = Object.is,
): readonly T[] {
  return items.length === before.length && items.every((item, at) => isSame(item, before[at] as T)) ? before : items;
}

/** Return whether two objects with the same keys have the same values. */
export function sameValues(one: object, other: object): boolean {
  const values: unknown[] = Object.values(one);
  return sameList(values, Object.values(other)) === values;
}
