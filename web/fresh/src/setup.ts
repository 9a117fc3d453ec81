/** Setup that packs the packages once for the whole run. */

import type { TestProject } from "vitest/node";
import { needsChromium } from "../../core/tests/chromium.js";
import { packAll } from "./packing.js";

export default async function setup(project: TestProject): Promise<() => void> {
  needsChromium();
  const { files, remove } = await packAll();
  project.provide("packed", files);
  return remove;
}
