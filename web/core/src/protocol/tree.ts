/**
 * The components of a surface by id, with atomic renders and patches.
 *
 * Theory of operation. Nodes are never changed in place. A `Change` collects new nodes and new lists
 * beside the tree. `keep` writes them to the tree; a change that is dropped leaves no trace. So the cost of
 * a commit depends on the size of the change and not on the size of the tree. `whole` is a component with its
 * children inside. It is built on demand and shared until the component or a descendant changes, so views
 * compare with `===` to find what is new.
 *
 * Root components are listed in outputs: one list per turn on the surface `main`, and the single list `""` on
 * other surfaces. The rules are those of `arp/protocol/tree.py`, and shared test cases check both.
 * Source: protocol.md 3 and 4.
 */

import { SLOTS, TEXT_PATHS, VERSIONS } from "./generated/tables.js";
import type { Append, Component, Insert, Json, JsonObject, PatchOp, Reorder, Update } from "./generated/wire.js";
import { extended, parsePath, Refused, setPath, type Path } from "./path.js";
import { isObject } from "./is_object.js";
import { isComponent } from "./shape.js";

const MOST_LEVELS = 3;
const MOST_FALLBACKS = 16;
const SLOT_NAMES: { readonly [slots: string]: readonly string[] } = {
  children: ["children"],
  tabs: ["tabs"],
  split: ["left", "right"],
};
const SLOTS_OF = new Map<string, string>(Object.entries(SLOTS));
const TEXT_PATH_OF = new Map<string, string>(Object.entries(TEXT_PATHS));
const CORE = new Set(Object.keys(VERSIONS));

interface Node {
  /** The component without its children. */
  readonly own: Component;
  /** Ids of the children, in order. */
  readonly children: readonly string[];
  readonly parent: string | null;
  readonly output: string;
  /** The component with its children; `null` until it is asked for. */
  whole: Component | null;
}

type Removed = (root: string, heir: string | null) => void;

/** A removed root component, and its heir: its replacement, or else the root before it. */
type Left = readonly [root: string, output: string, heir: string | null];

const NONE: readonly never[] = [];

/** The components of one surface. */
export class Tree {
  /** Nodes of all levels, by id. */
  readonly nodes = new Map<string, Node>();
  /** Ids of root components in order, by output. */
  readonly outputs = new Map<string, readonly string[]>();
  readonly #shown = new Map<string, readonly Component[]>();
  readonly #touch: (output: string) => void;
  readonly #removed: Removed;

  /**
   * @param touch Called with the name of each output that changes.
   * @param removed Called with the id of each removed root component, and the id of its heir.
   */
  constructor(touch: (output: string) => void = () => {}, removed: Removed = () => {}) {
    this.#touch = touch;
    this.#removed = removed;
  }

  /** Return the root components of one output, in order: the same array until one of them changes. */
  output(name: string): readonly Component[] {
    let shown = this.#shown.get(name);
    if (shown === undefined) {
      shown = (this.outputs.get(name) ?? NONE).map((id) => this.whole(id));
      this.#shown.set(name, shown);
    }
    return shown;
  }

  /** Return the component with its children inside. The id must exist. */
  whole(id: string): Component {
    return whole(id, (one) => this.nodes.get(one) as Node);
  }

  /** Append to the text of a component, if it exists and has a text. */
  appendText(id: string, text: string): void {
    const node = this.nodes.get(id);
    if (node === undefined) return;
    const { type, props } = node.own;
    const path = TEXT_PATH_OF.get(type) ?? (CORE.has(type) ? undefined : "content");
    if (path === undefined) return;
    const old = Object.hasOwn(props, path) ? props[path] : "";
    if (typeof old !== "string") return;
    const grown = { ...node, own: { ...node.own, props: { ...props, [path]: old + text } }, whole: null };
    if (node.parent === null) {
      // Streamed text is the most frequent change: a root has no ancestors to rebuild, so it needs no `Change`.
      this.nodes.set(id, grown);
      return this.#changed(node.output);
    }
    const change = new Change(this);
    change.put(id, grown);
    change.keep();
  }

  /** Write a complete change to the tree. `null` in `nodes` removes a node. */
  take(nodes: Map<string, Node | null>, lists: Map<string, readonly string[]>, left: readonly Left[]): void {
    const changed = new Set<string>(lists.keys());
    for (const [id, node] of nodes) {
      if (node === null) this.nodes.delete(id);
      else {
        this.nodes.set(id, node);
        changed.add(node.output);
      }
    }
    for (const [name, list] of lists) this.outputs.set(name, list);
    for (const name of changed) this.#changed(name);
    for (const [root, output, heir] of left) {
      // The id may have been used again in the same commit. As a root of the same output it keeps its marks; as a
      // child, or in another output, the marks would be shown in the wrong turn, or not at all.
      const node = this.nodes.get(root);
      if (node?.parent !== null || node.output !== output) this.#removed(root, heir);
    }
  }

  #changed(output: string): void {
    this.#shown.delete(output);
    this.#touch(output);
  }
}

/** One change of a tree. Its methods throw `Refused` for an operation that does not fit; then drop the change. */
export class Change {
  readonly #tree: Tree;
  readonly #nodes = new Map<string, Node | null>();
  readonly #lists = new Map<string, readonly string[]>();
  readonly #left: Left[] = [];

  constructor(tree: Tree) {
    this.#tree = tree;
  }

  /** Write the change to its tree, or to another empty one: the tree of a surface that this commit creates. */
  keep(tree = this.#tree): void {
    tree.take(this.#nodes, this.#lists, this.#left);
  }

  /** Replace the component with this id, or add it at the end of the output. */
  upsert(component: Component, output: string): void {
    if (this.#get(component.id)) this.#replace(component.id, component);
    else this.#place(component, output, null);
  }

  /** Remove all components. */
  clear(): void {
    for (const name of [...this.#tree.outputs.keys(), ...this.#lists.keys()]) {
      for (const id of this.#list(name, null)) this.#left.push([id, name, null]);
      this.#lists.set(name, NONE);
    }
    for (const id of [...this.#tree.nodes.keys(), ...this.#nodes.keys()]) this.#nodes.set(id, null);
  }

  /** Apply one operation; a component that is inserted at the top level goes to `output`. */
  patch(op: PatchOp, output: string): void {
    switch (op.op) {
      case "update":
        return this.#update(op);
      case "append":
        return this.#append(op);
      case "insert":
        return this.#insert(op, output);
      case "remove":
        return this.#remove(op.target);
      case "replace":
        this.#find(op.target);
        return this.#replace(op.target, op.component);
      case "reorder":
        return this.#reorder(op);
    }
  }

  /** Set a node, and renew its ancestors so that their `whole` is built again. */
  put(id: string, node: Node): void {
    this.#nodes.set(id, { ...node, whole: null });
    for (let up = node.parent; up !== null;) {
      const parent = this.#get(up) as Node;
      this.#nodes.set(up, { ...parent, whole: null });
      up = parent.parent;
    }
  }

  #update(op: Update): void {
    const node = this.#find(op.target);
    const path = parsePath(op.path);
    const slots = slotNames(node.own.type);
    if (!slots.includes(String(path[0])) || isLabel(node.own.type, path)) {
      this.#setProp(op.target, node, path, () => op.value);
    } else if (path.length === 1) {
      // Children are nodes of their own. Setting the prop would leave the old nodes in the tree, so an
      // update of all children replaces the whole component.
      const old = whole(op.target, (id) => this.#find(id));
      const props = { ...old.props, [String(path[0])]: op.value };
      this.#replace(op.target, { ...old, props });
    } else {
      throw new Refused(op.path); // children are patched through their own ids
    }
  }

  #append(op: Append): void {
    const node = this.#find(op.target);
    const path = parsePath(op.path);
    if (slotNames(node.own.type).includes(String(path[0]))) {
      throw new Refused(op.path);
    }
    this.#setProp(op.target, node, path, (old) => extended(old, op));
  }

  #setProp(id: string, node: Node, path: Path, next: (old: Json | undefined) => Json): void {
    const props = setPath(node.own.props, path, next) as JsonObject;
    this.put(id, { ...node, own: { ...node.own, props } });
  }

  #insert({ component, after, parent }: Insert, output: string): void {
    if (this.#get(component.id)) throw new Refused(component.id);
    let holder = parent ?? null;
    if (holder === null && after != null) {
      // The list of `after` decides, not the current turn: the component may belong to an earlier turn.
      const sibling = this.#find(after);
      holder = sibling.parent;
      output = sibling.output;
    }
    if (holder !== null) {
      const node = this.#find(holder);
      if (SLOTS_OF.get(node.own.type) !== "children") throw new Refused(holder);
      output = node.output;
    }
    this.#place(component, output, holder, after);
  }

  #reorder({ target, after }: Reorder): void {
    const node = this.#find(target);
    if (after === target) throw new Refused(target);
    const rest = this.#freeList(node).filter((id) => id !== target);
    this.#setList(node.output, node.parent, placed(rest, target, after ?? null));
  }

  #remove(target: string): void {
    const { output, parent } = this.#find(target);
    const list = this.#freeList({ output, parent });
    this.#forget(target);
    this.#setList(
      output,
      parent,
      list.filter((id) => id !== target),
    );
    if (parent === null) this.#left.push([target, output, list[list.indexOf(target) - 1] ?? null]);
  }

  #replace(target: string, component: Component): void {
    const { output, parent } = this.#find(target);
    // Forget the old nodes first: the new component may use the same ids.
    this.#forget(target);
    this.#add(component, output, parent, this.#level(parent) + 1);
    const list = this.#list(output, parent);
    this.#setList(output, parent, list.with(list.indexOf(target), component.id));
    if (parent === null && component.id !== target) this.#left.push([target, output, component.id]);
  }

  #place(component: Component, output: string, parent: string | null, after?: string | null): void {
    const list = placed(this.#list(output, parent), component.id, after);
    this.#add(component, output, parent, this.#level(parent) + 1);
    this.#setList(output, parent, list);
  }

  #add(component: Component, output: string, parent: string | null, level: number): void {
    const { id } = component;
    if (level > MOST_LEVELS) throw new Refused(id);
    // Two nodes with one id would make every later patch ambiguous.
    if (this.#get(id)) throw new Refused(id);
    const [own, children] = apart(plain(component));
    this.#nodes.set(id, { own, children: children.map((c) => c.id), parent, output, whole: null });
    for (const child of children) this.#add(child, output, id, level + 1);
  }

  #forget(id: string): void {
    for (const child of (this.#get(id) as Node).children) this.#forget(child);
    this.#nodes.set(id, null);
  }

  #get(id: string): Node | null | undefined {
    return this.#nodes.has(id) ? this.#nodes.get(id) : this.#tree.nodes.get(id);
  }

  #find(id: string): Node {
    const node = this.#get(id);
    if (!node) throw new Refused(id);
    return node;
  }

  #level(id: string | null): number {
    let level = 0;
    for (; id !== null; id = this.#find(id).parent) level += 1;
    return level;
  }

  #list(output: string, parent: string | null): readonly string[] {
    if (parent !== null) return this.#find(parent).children;
    return this.#lists.get(output) ?? this.#tree.outputs.get(output) ?? NONE;
  }

  /** Return the list that contains a node, or refuse if the number of its children is fixed (`tabs`, `split`). */
  #freeList({ output, parent }: Pick<Node, "output" | "parent">): readonly string[] {
    if (parent !== null && SLOTS_OF.get(this.#find(parent).own.type) !== "children") {
      throw new Refused(parent);
    }
    return this.#list(output, parent);
  }

  #setList(output: string, parent: string | null, list: readonly string[]): void {
    if (parent === null) this.#lists.set(output, list);
    else this.put(parent, { ...this.#find(parent), children: list });
  }
}

function whole(id: string, get: (id: string) => Node): Component {
  const node = get(id);
  node.whole ??= withChildren(
    node.own,
    node.children.map((child) => whole(child, get)),
  );
  return node.whole;
}

/** Return a list with an id inserted after `after`; `null` means at the start, absent at the end. */
function placed(list: readonly string[], id: string, after?: string | null): readonly string[] {
  if (after === undefined) return [...list, id];
  const at = after === null ? 0 : list.indexOf(after) + 1;
  if (at === 0 && after !== null) throw new Refused(after);
  return list.toSpliced(at, 0, id);
}

function slotNames(type: string): readonly string[] {
  return SLOT_NAMES[SLOTS_OF.get(type) ?? ""] ?? NONE;
}

function isLabel(type: string, path: Path): boolean {
  return type === "tabs" && path.length === 3 && (path[2] === "label" || path[2] === "icon");
}

/** Return a component without unknown fields and without fields that have their default value. */
function plain({ id, type, props, version, fallback }: Component): Component {
  const out: Component = { id, type, props };
  if (version !== undefined && version !== 1) out.version = version;
  if (fallback != null) out.fallback = plain(fallback);
  return out;
}

/** Return a component without its children, and the list of the children. */
function apart(component: Component): [Component, Component[]] {
  let fallbacks = 0;
  for (let next = component.fallback; next != null; next = next.fallback) fallbacks += 1;
  // The limit bounds the recursion of code that follows fallbacks, such as drawing.
  if (fallbacks > MOST_FALLBACKS) throw new Refused(component.id);
  const names = slotNames(component.type);
  if (names.length === 0) return [component, []];
  const props = { ...component.props };
  const children: unknown[] = [];
  for (const name of names) {
    const found = Object.hasOwn(props, name) ? props[name] : undefined;
    delete props[name];
    if (names.length === 2) {
      children.push(found);
    } else if (name === "tabs") {
      const tabs = items(found);
      children.push(...tabs.map((tab) => isObject(tab) && tab.component));
      props.tabs = tabs.map(withoutComponent);
    } else {
      children.push(...items(found));
    }
  }
  if (!children.every(isComponent)) throw new Refused(component.id);
  return [{ ...component, props }, children];
}

/** Return the items of an array. An absent or empty value has none; refuse any other value. */
function items(value: Json | undefined): Json[] {
  if (Array.isArray(value)) return value;
  const isEmpty = value === "" || (isObject(value) && Object.keys(value).length === 0);
  if (value !== undefined && !isEmpty) throw new Refused("children");
  return [];
}

function withoutComponent(tab: Json): Json {
  const { component: _, ...label } = tab as JsonObject;
  return label;
}

function withChildren(own: Component, children: readonly Component[]): Component {
  const slots = SLOTS_OF.get(own.type);
  if (slots === undefined) return own;
  const inside = children as unknown as Json[];
  const props = { ...own.props };
  if (slots === "tabs") {
    const labels = props.tabs as JsonObject[];
    props.tabs = labels.map((label, at) => ({ ...label, component: inside[at] as Json }));
  } else if (slots === "split") {
    [props.left, props.right] = inside as [Json, Json];
  } else {
    props.children = inside;
  }
  return { ...own, props };
}
