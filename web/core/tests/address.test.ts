import { afterEach, expect, test, vi } from "vitest";
import { parseAddress } from "../src/transport/address.js";

afterEach(() => {
  vi.unstubAllGlobals();
});

test.each(["http://h:1/app", "http://h:1/app/", "ws://h:1/app", "ws://h:1/app/_arp/v1", "http://h:1/app/_arp/v1/"])(
  "%s names the socket, the events, the input and the base",
  (url) => {
    expect(parseAddress(url)).toEqual({
      transports: ["websocket", "sse"],
      socket: "ws://h:1/app/_arp/v1",
      events: "http://h:1/app/_arp/v1/events",
      input: "http://h:1/app/_arp/v1/input",
      base: "http://h:1/app",
    });
  },
);

test("TLS stays TLS, a query stays", () => {
  const { socket, events } = parseAddress("https://h/?workflow=a");
  expect([socket, events]).toEqual(["wss://h/_arp/v1?workflow=a", "https://h/_arp/v1/events?workflow=a"]);
});

test("one transport can be asked for", () => {
  expect(parseAddress("http://h", "sse").transports).toEqual(["sse"]);
});

test("in a page an address may be relative", () => {
  vi.stubGlobal("document", { baseURI: "https://h/app/index.html" });
  expect(parseAddress("./").base).toBe("https://h/app");
});

test.each(["ftp://h", "nowhere", ""])("%s is refused, with what to write", (url) => {
  expect(() => parseAddress(url)).toThrow(TypeError);
});
