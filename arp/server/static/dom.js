/** Building and arranging of elements. Strings become text nodes; no HTML is ever parsed. */

const SVG = "http://www.w3.org/2000/svg";

const ICONS = {
  attach:
    "M20 11.5 12 19.5a5 5 0 0 1-7-7l8.5-8.5a3.3 3.3 0 0 1 4.7 4.7l-8.4 8.4a1.7 1.7 0 0 1-2.4-2.4l7.6-7.6",
  check: "m5 12.5 4.5 4.5L19 7.5",
  close: "M6 6l12 12M18 6 6 18",
  copy: "M9 9h10v11H9zM15 9V4H5v11h4",
  down: "M12 5v14m-6-6 6 6 6-6",
  error: "M12 7v6m0 3.5v.1M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18",
  file: "M6 3h8l4 4v14H6zM14 3v4h4",
  info: "M12 11v6m0-9.6v.1M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18",
  new: "M12 5v14M5 12h14",
  send: "M12 19V5m-6 6 6-6 6 6",
  success: "m8 12.3 2.8 2.8L16 9.5M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18",
  tool: "m14.5 6.5 3 3M4 20l9-9m-.5-5.5a4 4 0 0 1 5-2l-2.5 2.5.5 2 2 .5L20.5 6a4 4 0 0 1-5.5 5.5l-3-3a4 4 0 0 1 .5-3",
  warning: "M12 9v5m0 2.8v.1M12 4 2.8 20h18.4z",
};

/**
 * Builds an element. `props` come from this page's own code, never from the wire: `class`, `on…`
 * with a function, attributes; false and null leave an attribute out, true sets it empty.
 */
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) setAttribute(node, name, value);
  node.append(...children.flat().filter((child) => child != null && child !== false));
  return node;
}

/** Sets, or with false and null removes, one attribute or listener. */
export function setAttribute(node, name, value) {
  if (typeof value === "function") node.addEventListener(name.slice(2), value);
  else if (value === false || value == null) node.removeAttribute(name);
  else node.setAttribute(name, value === true ? "" : String(value));
}

/** One of the page's own line drawings; hidden from assistive technology. */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  const path = document.createElementNS(SVG, "path");
  for (const [key, value] of [
    ["viewBox", "0 0 24 24"],
    ["class", "icon"],
    ["aria-hidden", "true"],
  ]) {
    svg.setAttribute(key, value);
  }
  path.setAttribute("d", ICONS[name] ?? ICONS.info);
  svg.append(path);
  return svg;
}

/** Text that only assistive technology reads. */
export function unseen(text) {
  return el("span", { class: "unseen" }, text);
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

let count = 0;

/** An id for an element, unique in this page. */
export function uniqueId(prefix) {
  count += 1;
  return `${prefix}-${count}`;
}

/** What the agent sent as a list; anything else is an empty one. */
export function asList(value) {
  return Array.isArray(value) ? value : [];
}

/** What the agent sent as text; anything that is not plain is empty. */
export function asText(value) {
  return ["string", "number", "boolean"].includes(typeof value) ? String(value) : "";
}
