/** Packages, built and packed as for publishing. */

import { execFile } from "node:child_process";
import { rmSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const WEB = fileURLToPath(new URL("../../", import.meta.url));
const NAMES = ["core", "elements", "react", "vue"] as const;

/** Files of packed packages by their short name. */
export type Packed = { readonly [Name in (typeof NAMES)[number]]: string };

declare module "vitest" {
  interface ProvidedContext {
    packed: Packed;
  }
}

/** Build and pack all packages; `remove` deletes the files. */
export async function packAll(): Promise<{ files: Packed; remove: () => void }> {
  const folder = await temporary("packed");
  const workspaces = NAMES.flatMap((name) => ["-w", name]);
  for (const name of NAMES) await npm(WEB, "run", "build", "-w", name);
  const { stdout } = await npm(WEB, "pack", ...workspaces, "--json", "--pack-destination", folder);
  const packed = JSON.parse(stdout.slice(stdout.search(/^[[{]/m))) as
    { name: string; filename: string }[] | Record<string, { name: string; filename: string }>;
  const files = (Array.isArray(packed) ? packed : Object.values(packed)).map(({ name, filename }) => [
    name.replace("@agent-rendering/", ""),
    join(folder, filename),
  ]);
  return { files: Object.fromEntries(files) as Packed, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** Create a temporary folder outside of the repository. */
export function temporary(name: string): Promise<string> {
  return mkdtemp(join(tmpdir(), `arp-fresh-${name}-`));
}

/** Run npm; the error contains its output. */
export async function npm(cwd: string, ...words: string[]): Promise<{ stdout: string }> {
  try {
    // Without the test runner's NODE_ENV: with it, the build would differ from that of a user.
    const { NODE_ENV: _, ...env } = process.env;
    return await run("npm", words, { cwd, env, maxBuffer: 32 << 20 });
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    throw new Error(`npm ${words.join(" ")}:\n${stdout}\n${stderr}`);
  }
}
