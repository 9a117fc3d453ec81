/** Building and arranging of elements. Strings become text nodes; no HTML is ever parsed. */

/**
 * Builds an element. `props` come from the page's own code, never from a fact: `on…` with a
 * function listens, false and null leave an attribute out, true sets it empty.
 */
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else if (value !== false && value != null)
      node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat().filter((child) => child != null && child !== false));
  return node;
}

/** Makes `nodes` the children of `parent`, moving none that stands right: focus and scroll stay. */
export function arrange(parent, nodes) {
  const keep = new Set(nodes);
  for (const child of [...parent.childNodes]) if (!keep.has(child)) child.remove();
  let at = parent.firstChild;
  for (const node of nodes) {
    if (node === at) at = at.nextSibling;
    else parent.insertBefore(node, at);
  }
}

/** Sets text only where it differs, so that selections and live regions stay quiet. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** The page's element of that id. */
export function at(id) {
  return document.getElementById(id);
}
