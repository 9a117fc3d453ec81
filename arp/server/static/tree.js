/**
 * A list of components and the six patch operations on it. Nothing is changed in place: every
 * operation returns a new list that shares what it did not touch, so that a commit can be taken
 * back by keeping the old list, and a view sees by `===` what is new. Source: protocol.md 4.
 */

/** An operation that does not fit what is on the screen; nothing has been changed. */
export class PatchRefused extends Error {}

const FORBIDDEN = new Set(["constructor", "prototype"]);

/** The component `id` in `list`, nested or not; undefined when there is none. */
export function find(list, id) {
  for (const component of list) {
    if (component.id === id) return component;
    const nested = find(children(component), id);
    if (nested) return nested;
  }
  return undefined;
}

/** The list with `component` in place of the one with its id; undefined when there is none. */
export function replaceById(list, id, component) {
  return around(list, id, (siblings, at) => siblings.with(at, component));
}

/** The list after `op`; undefined when its target is not in this list. */
export function applyOp(list, op) {
  const operation = Object.hasOwn(OPERATIONS, op.op) ? OPERATIONS[op.op] : undefined;
  if (!operation) throw new PatchRefused(`unknown patch op ${op.op}`);
  return operation(list, op);
}

const OPERATIONS = {
  update: (list, op) => change(list, op, () => op.value),
  append: (list, op) => change(list, op, (old) => extended(old, op)),
  insert: (list, op) => insert(list, op),
  remove: (list, op) => around(list, op.target, (siblings, at) => siblings.toSpliced(at, 1)),
  replace: (list, op) => replaceById(list, op.target, op.component),
  reorder: (list, op) => around(list, op.target, (siblings, at) => reorder(siblings, at, op)),
};

function change(list, op, next) {
  const path = checkedPath(op.path);
  return around(list, op.target, (siblings, at) =>
    siblings.with(at, setPath(siblings[at], path, next)),
  );
}

function checkedPath(path) {
  const segments = String(path).split(".");
  const bad = segments.find((segment) => segment.startsWith("_") || FORBIDDEN.has(segment));
  if (bad !== undefined || segments[0] !== "props" || segments.length < 2) {
    throw new PatchRefused(`path ${path} does not lead into props`);
  }
  return segments;
}

function setPath(value, [segment, ...rest], next) {
  if (Array.isArray(value)) return setIndex(value, segment, rest, next);
  if (value === null || typeof value !== "object") {
    throw new PatchRefused(
      `nothing named ${segment} can be set in ${value} of type ${typeof value}`,
    );
  }
  const old = Object.hasOwn(value, segment) ? value[segment] : undefined;
  return { ...value, [segment]: rest.length ? setPath(old, rest, next) : next(old) };
}

function setIndex(array, segment, rest, next) {
  const index = /^\d{1,9}$/.test(segment) ? Number(segment) : NaN;
  if (!(index < array.length)) throw new PatchRefused(`no item ${segment} in the array`);
  return array.with(index, rest.length ? setPath(array[index], rest, next) : next(array[index]));
}

function extended(old, { value, offset, target, path }) {
  const before = old ?? (Array.isArray(value) ? [] : "");
  const fits = Array.isArray(before) ? Array.isArray(value) : typeof before === typeof value;
  if (!fits || (typeof before !== "string" && !Array.isArray(before))) {
    throw new PatchRefused(`${target} ${path} cannot be extended by a ${typeof value}`);
  }
  if (offset != null && offset !== length(before)) {
    throw new PatchRefused(`${target} ${path} has length ${length(before)}, not ${offset}`);
  }
  return before.concat(value);
}

/** Length as the agent side counts it: code points for text, items for an array. */
function length(value) {
  return typeof value === "string" ? [...value].length : value.length;
}

function insert(list, { component, after, parent }) {
  if (parent != null) {
    return around(list, parent, (siblings, at) =>
      siblings.with(
        at,
        withChildren(siblings[at], place(children(siblings[at]), component, after)),
      ),
    );
  }
  if (after == null) return place(list, component, after);
  return around(list, after, (siblings, at) => siblings.toSpliced(at + 1, 0, component));
}

function place(siblings, component, after) {
  if (after === null) return [component, ...siblings];
  if (after === undefined) return [...siblings, component];
  const at = siblings.findIndex((sibling) => sibling.id === after);
  if (at < 0) throw new PatchRefused(`no component ${after} to insert behind`);
  return siblings.toSpliced(at + 1, 0, component);
}

function reorder(siblings, at, { after }) {
  return place(siblings.toSpliced(at, 1), siblings[at], after);
}

/** Rebuilds the way from the top to the list that holds `id`, and there calls `edit`. */
function around(list, id, edit) {
  const at = list.findIndex((component) => component.id === id);
  if (at >= 0) return edit(list, at);
  for (const [index, component] of list.entries()) {
    const inner = children(component);
    const edited = inner.length ? around(inner, id, edit) : undefined;
    if (edited) return list.with(index, withChildren(component, edited));
  }
  return undefined;
}

/** What stands inside a component: only `group` nests on this renderer. */
export function children(component) {
  const inner = component.type === "group" ? component.props?.children : undefined;
  return Array.isArray(inner) ? inner : [];
}

function withChildren(component, inner) {
  return { ...component, props: { ...component.props, children: inner } };
}
