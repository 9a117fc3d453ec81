/**
 * The components of one surface, by id, and what renders and patches do to them: all or nothing.
 *
 * Theory of operation. Nodes are never changed in place. A `Change` gathers new nodes and new lists
 * beside the tree; `keep` puts them in, and a change that is dropped leaves no trace. So a commit
 * costs what it changes. `whole` is a component with its children inside, made when it is asked for
 * and shared until it, or something in it, changes: views see by `===` what is new.
 *
 * Root components are in outputs: one list per turn on the surface `main`, the list `""` on
 * others. The rules are those of `arp/protocol/tree.py`; shared cases hold both to them.
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
  /** Without its children. */
  readonly own: Component;
  readonly children: readonly string[];
  readonly parent: string | null;
  readonly output: string;
  whole: Component | null;
}

type Removed = (root: string, heir: string | null) => void;

/** A root component that left its place in an output, and its heir: what is in its place, or before it. */
type Left = readonly [root: string, output: string, heir: string | null];

const NONE: readonly never[] = [];

/** What shows on one surface. */
export class Tree {
  /** By id, over all levels. */
  readonly nodes = new Map<string, Node>();
  /** Ids of root components in order. */
  readonly outputs = new Map<string, readonly string[]>();
  readonly #shown = new Map<string, readonly Component[]>();
  readonly #touch: (output: string) => void;
  readonly #removed: Removed;

  /** `touch` gets the output that changes, `removed` the root that is gone and what replaces it. */
  constructor(touch: (output: string) => void = () => {}, removed: Removed = () => {}) {
    this.#touch = touch;
    this.#removed = removed;
  }

  /** The root components of one output, in order; the same array until one of them changes. */
  output(name: string): readonly Component[] {
    let shown = this.#shown.get(name);
    if (shown === undefined) {
      shown = (this.outputs.get(name) ?? NONE).map((id) => this.whole(id));
      this.#shown.set(name, shown);
    }
    return shown;
  }

  /** The component with this id, children inside; it is there. */
  whole(id: string): Component {
    return whole(id, (one) => this.nodes.get(one) as Node);
  }

  /** Appends to the text of a component, if it is there and has one. */
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
      this.nodes.set(id, grown); // as a change would, for what comes most often
      return this.#changed(node.output);
    }
    const change = new Change(this);
    change.put(id, grown);
    change.keep();
  }

  /** Puts a finished change in. */
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
      const there = this.nodes.get(root);
      if (there?.parent !== null || there.output !== output) this.#removed(root, heir);
    }
  }

  #changed(output: string): void {
    this.#shown.delete(output);
    this.#touch(output);
  }
}

/** One change of a tree. Its methods throw `Refused`; then it is to be dropped. */
export class Change {
  readonly #tree: Tree;
  readonly #nodes = new Map<string, Node | null>();
  readonly #lists = new Map<string, readonly string[]>();
  readonly #left: Left[] = [];

  constructor(tree: Tree) {
    this.#tree = tree;
  }

  /** Makes the change; in another tree, if that one is to take the place of an empty one. */
  keep(tree = this.#tree): void {
    tree.take(this.#nodes, this.#lists, this.#left);
  }

  /** Replaces the component with this id, or adds it at the end of the output. */
  upsert(component: Component, output: string): void {
    if (this.#get(component.id)) this.#replace(component.id, component);
    else this.#place(component, output, null);
  }

  /** Removes everything. */
  clear(): void {
    for (const name of [...this.#tree.outputs.keys(), ...this.#lists.keys()]) {
      for (const id of this.#list(name, null)) this.#left.push([id, name, null]);
      this.#lists.set(name, NONE);
    }
    for (const id of [...this.#tree.nodes.keys(), ...this.#nodes.keys()]) this.#nodes.set(id, null);
  }

  /** Applies one op; `output` takes what is inserted at its top level. */
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

  /** Sets a node; those that contain it are made again. */
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
      const old = whole(op.target, (id) => this.#find(id));
      const props = { ...old.props, [String(path[0])]: op.value };
      this.#replace(op.target, { ...old, props });
    } else {
      throw new Refused(op.path); // children are patched by their own ids
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

/** Puts an id into a list: `null` = first, absent = last, else after that one. */
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

/** A component without fields that nobody knows, and without those that say nothing. */
function plain({ id, type, props, version, fallback }: Component): Component {
  const out: Component = { id, type, props };
  if (version !== undefined && version !== 1) out.version = version;
  if (fallback != null) out.fallback = plain(fallback);
  return out;
}

/** Splits a component from its children. */
function apart(component: Component): [Component, Component[]] {
  let fallbacks = 0;
  for (let next = component.fallback; next != null; next = next.fallback) fallbacks += 1;
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

/** The items of an array; what is absent or has nothing in it has none. */
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
