/**
 * Changes a list of nodes into another one, and keeps every node that can be changed in place. Replaced nodes would
 * lose the selection and the focus, and would have to be laid out again.
 */

/** Custom elements in prose: they keep their node, and these properties are copied to it. */
const TAKEN_OVER: { readonly [tag: string]: readonly string[] } = {
  "ARP-CITE": ["number", "context"],
  "ARP-CODE": ["code", "language", "unfinished", "context"],
  "ARP-MATH": ["source", "display"],
  "ARP-PICTURE": ["source", "alt", "inline", "context"],
};

/**
 * Change nodes into other ones. Returns the resulting nodes.
 *
 * @param old Consecutive children of `parent`.
 * @param made New nodes, without a parent.
 * @param end Node after `old`; `null` if they are the last children.
 */
export function morph(parent: Node, old: readonly Node[], made: readonly Node[], end: Node | null = null): Node[] {
  const kept = made.map((node, at) => {
    const there = old[at];
    if (there === undefined) {
      parent.insertBefore(node, end);
      return node;
    }
    if (becomes(there, node)) return there;
    parent.replaceChild(node, there);
    return node;
  });
  for (const node of old.slice(made.length)) parent.removeChild(node);
  return kept;
}

/** Change a node in place so that it equals another one. Returns `false` if that is not possible. */
function becomes(old: Node, made: Node): boolean {
  if (old.nodeName !== made.nodeName) return false;
  if (old instanceof Text) {
    if (old.data !== (made as Text).data) grow(old, (made as Text).data);
    return true;
  }
  if (!(old instanceof HTMLElement) || !(made instanceof HTMLElement)) return false;
  // The content of these elements is their own. Comparing it with that of a new, undrawn element would remove it.
  const own = TAKEN_OVER[old.nodeName];
  if (own) {
    for (const name of own) Object.assign(old, { [name]: (made as unknown as Record<string, unknown>)[name] });
    return true;
  }
  for (const { name } of [...old.attributes]) if (!made.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of [...made.attributes])
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  morph(old, [...old.childNodes], [...made.childNodes]);
  return true;
}

/** Set a text. A text that only grows is appended to, because setting it would clear a selection in it. */
function grow(node: Text, text: string): void {
  if (text.startsWith(node.data)) node.appendData(text.slice(node.data.length));
  else node.data = text;
}
