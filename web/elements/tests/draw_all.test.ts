/** W21, W22: elements that change together are drawn together, and unchanged elements are not drawn. */

import { html, type TemplateResult } from "lit";
import { beforeEach, expect, test } from "vitest";
import { ComponentElement } from "../src/base/component_element.js";
import { ArpElement, define } from "../src/base/element.js";
import "../src/markdown/prose.js";
import { drawAll } from "../src/base/draw_all.js";

let drawn: string[];

class Leaf extends ArpElement {
  static override properties = { name: { type: String } };
  declare name: string;

  protected override render(): TemplateResult {
    drawn.push(this.name);
    return html`<b>${this.name}</b>`;
  }
}
define("test-leaf", Leaf);

class Branch extends ArpElement {
  static override properties = { name: { type: String } };
  declare name: string;

  protected override render(): TemplateResult {
    drawn.push(`branch ${this.name}`);
    return html`<test-leaf .name=${this.name}></test-leaf>`;
  }
}
define("test-branch", Branch);

class Tree extends ArpElement {
  static override properties = { names: { attribute: false } };
  declare names: readonly string[];

  protected override update(changed: Map<PropertyKey, unknown>): void {
    drawAll(this, () => super.update(changed));
    drawn.push(`settled: ${[...this.querySelectorAll("b")].map((one) => one.textContent).join()}`);
  }

  protected override render(): TemplateResult {
    return html`${this.names.map((name) => html`<test-branch .name=${name}></test-branch>`)}`;
  }
}
define("test-tree", Tree);

class Failing extends ComponentElement {
  protected override draw(): unknown {
    throw new Error("cannot");
  }
}
define("test-failing", Failing);

let tree: Tree;

beforeEach(async () => {
  document.body.replaceChildren();
  drawn = [];
  tree = document.createElement("test-tree") as Tree;
  tree.names = ["a", "b", "c"];
  document.body.append(tree);
  await tree.updateComplete;
});

test("W21 elements on every level below are drawn before the drawing ends", () => {
  expect(drawn.at(-1)).toBe("settled: a,b,c");
});

test("W22 only changed elements are drawn again", async () => {
  drawn = [];
  tree.names = ["a", "x", "c"];
  await tree.updateComplete;
  expect(drawn).toEqual(["branch x", "x", "settled: a,x,c"]);
});

test("W22 an element elsewhere that changes is drawn later, not within this drawing", async () => {
  const other = document.createElement("test-leaf") as Leaf;
  other.name = "other";
  document.body.append(other);
  await other.updateComplete;
  drawn = [];
  drawAll(tree, () => (other.name = "changed"));
  expect(drawn).toEqual([]);
  await other.updateComplete;
  expect(drawn).toEqual(["changed"]);
});

test("W14 elements in prose are drawn later", async () => {
  const prose = document.createElement("arp-prose");
  tree.append(prose);
  const leaf = document.createElement("test-leaf") as Leaf;
  drawAll(tree, () => {
    leaf.name = "inside";
    prose.append(leaf);
  });
  expect(drawn).not.toContain("inside");
});

test("a drawing that throws does not prevent the next drawing", async () => {
  expect(() =>
    drawAll(tree, () => {
      throw new Error("theirs");
    }),
  ).toThrow("theirs");
  drawn = [];
  tree.names = ["y", "b", "c"];
  await tree.updateComplete;
  expect(drawn.at(-1)).toBe("settled: y,b,c");
});

test("W84 a component that cannot be drawn keeps its error card", async () => {
  let failing!: Failing;
  drawAll(tree, () => {
    failing = document.createElement("test-failing") as Failing;
    failing.component = { id: "f", type: "x-a", props: {} };
    tree.append(failing);
  });
  expect(failing.querySelector(".arp-failure")).not.toBeNull();
  await failing.updateComplete;
  await new Promise((resolve) => setTimeout(resolve));
  expect(failing.querySelector(".arp-failure")).not.toBeNull();
});
