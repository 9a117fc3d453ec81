/** Keeps lists the same objects while nothing in them changes, so that their readers see no change. */

/** Returns the list before if the new one has the same items in the same order. */
export function sameList<T>(
  before: readonly T[],
  items: readonly T[],
  isSame: (one: T, other: T) => boolean = Object.is,
): readonly T[] {
  return items.length === before.length && items.every((item, at) => isSame(item, before[at] as T)) ? before : items;
}

/** Returns whether two objects with the same keys have the same values. */
export function sameValues(one: object, other: object): boolean {
  const values: unknown[] = Object.values(one);
  return sameList(values, Object.values(other)) === values;
}
