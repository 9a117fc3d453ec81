/** W53, W79: pictures from other hosts, on a page whose policy does not allow them. */

import { render } from "lit";
import { afterEach, expect, test } from "vitest";
import { component, drawn, noting, ready } from "./context.js";

afterEach(() => render(null, document.body));

const image = (host: string) => component("image", { src: `https://${host}/map.png`, alt: "A map" });

/** Draw a picture and give consent to load it. */
async function allowed(host: string, frame: string | null): Promise<HTMLElement> {
  const place = await drawn(image(host), noting({ pictureFrame: frame }).context);
  expect(place.querySelectorAll("img, iframe").length).toBe(0);
  place.querySelector("button")?.click();
  await import("../src/base/picture_frame.js");
  await ready(place);
  return place;
}

/** Send a message to the page, as the frame or another window does. */
function notify(source: Window | null, data: unknown): void {
  dispatchEvent(Object.assign(new Event("message"), { source, data }));
}

test("W53 a picture that the page may load is an image", async () => {
  const place = await allowed("one.example", null);
  expect(place.querySelector("img")?.getAttribute("src")).toBe("https://one.example/map.png");
});

test("W53 W79 another picture is in a frame without access to the page, with the name of the picture", async () => {
  const place = await allowed("two.example", "_picture");
  const frame = place.querySelector("iframe");
  expect(place.querySelector("img")).toBeNull();
  expect(frame?.getAttribute("src")).toBe("_picture?src=https%3A%2F%2Ftwo.example%2Fmap.png");
  expect(["sandbox", "role", "title", "tabindex", "referrerpolicy"].map((name) => frame?.getAttribute(name))).toEqual([
    "allow-scripts",
    "img",
    "A map",
    "-1",
    "no-referrer",
  ]);
});

test("W53 the frame sets the size of the picture, and messages of other windows are ignored", async () => {
  const place = await allowed("three.example", "_picture");
  const frame = () => place.querySelector("iframe");
  const size = () => [frame()?.getAttribute("width"), frame()?.getAttribute("height")];
  for (const received of [
    null,
    "x",
    {},
    { arpPicture: [1, "2"] },
    { arpPicture: [0, 5] },
    { arpPicture: [1, 2, 3] },
    { arpPicture: [1e9, 1] },
  ])
    notify(frame()?.contentWindow ?? null, received);
  notify(window, { arpPicture: [7, 7] });
  await ready(place);
  expect(size()).toEqual(["320", "180"]);
  notify(frame()?.contentWindow ?? null, { arpPicture: [240, 160] });
  await ready(place);
  expect(size()).toEqual(["240", "160"]);
});

test("W53 a picture that fails to load is replaced by a message", async () => {
  const place = await allowed("four.example", "_picture");
  notify(place.querySelector("iframe")?.contentWindow ?? null, { arpPicture: null });
  await ready(place);
  expect(place.querySelector("iframe")).toBeNull();
  expect(place.querySelector(".arp-picture-failed [dir]")?.textContent).toBe("A map");
});

test("W53 the picture of a product fills its area", async () => {
  const place = await drawn(
    component("product-cards", { cards: [{ name: "Lamp", image: "https://five.example/lamp.png" }] }),
    noting({ pictureFrame: "_picture" }).context,
  );
  await import("../src/components/product_cards.js");
  await ready(place);
  place.querySelector<HTMLElement>(".arp-picture-place button")?.click();
  await ready(place);
  expect(place.querySelector("iframe")?.getAttribute("src")).toBe(
    "_picture?src=https%3A%2F%2Ffive.example%2Flamp.png&fit=cover",
  );
});
