import { expect, test } from "vitest";
import { fileAddress } from "../src/client/file_address.js";

const sha256 = "ab".repeat(32);
const path = (session: string, name: string) =>
  fileAddress("http://h:1/app/", session, { sha256, name }).replace(`/${sha256}/`, " ");

/** Addresses as `blob_path` of the server builds them; tests/protocol has the same pairs. */
test.each([
  ["s1", "map.png", "http://h:1/app/_api/blobs/sczE map.png"],
  ["öre?>", "a b/c..tar.gz", "http://h:1/app/_api/blobs/sw7ZyZT8- a-b-c..tar.gz"],
  ["s1", ".hidden", "http://h:1/app/_api/blobs/sczE hidden"],
  ["s1", "..", "http://h:1/app/_api/blobs/sczE file"],
  ["s1", "写真.jpg", "http://h:1/app/_api/blobs/sczE file.jpg"],
  ["s1", "name.", "http://h:1/app/_api/blobs/sczE name"],
])("the address of a file of %s called %s", (session, name, expected) => {
  expect(path(session, name)).toBe(expected);
});
