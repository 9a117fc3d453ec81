/** Content of the hydrated pages (W86), for the `h` function and the components of either framework. */

export const CHAT = { title: "Sales & Söhne", description: "<Ask>", suggestions: ["hello"] };

export function parts(h, { ArpMessage, ArpRenderer, Table, Reading }) {
  return [
    h(ArpMessage, { role: "user", content: "Hi" }),
    h(ArpMessage, { role: "assistant", content: "**Bold** words" }),
    h(ArpRenderer, { component: { id: "r", type: "x-demo-rating", props: { stars: 3 } } }),
    h(ArpRenderer, {
      component: { id: "p", type: "progress", props: { steps: [{ name: "Load", status: "active" }] } },
    }),
    h(Table, { title: "Cities", headers: ["City"], rows: [["Oslo"]] }),
    h(Reading),
  ];
}
