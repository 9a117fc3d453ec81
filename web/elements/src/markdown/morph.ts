/** Makes one list of nodes into another, keeping every node that says the same already. */

/** Elements of ours in prose keep their node and take over these properties. */
const TAKEN_OVER: { readonly [tag: string]: readonly string[] } = {
  "ARP-CITE": ["number", "context"],
  "ARP-CODE": ["code", "language", "unfinished", "context"],
  "ARP-MATH": ["source", "display"],
  "ARP-PICTURE": ["source", "alt", "inline", "context"],
};

/** Makes the nodes `old`, which are in `parent` before `end`, into `made`; returns those that are there then. */
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

/** Makes a node into another if it can; returns whether it did. */
function becomes(old: Node, made: Node): boolean {
  if (old.nodeName !== made.nodeName) return false;
  if (old instanceof Text) {
    if (old.data !== (made as Text).data) grow(old, (made as Text).data);
    return true;
  }
  if (!(old instanceof HTMLElement) || !(made instanceof HTMLElement)) return false;
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

/** Changes a text; what only grows at its end keeps selections that are in it. */
function grow(node: Text, text: string): void {
  if (text.startsWith(node.data)) node.appendData(text.slice(node.data.length));
  else node.data = text;
}
