/** A real `arp serve` for tests. */

import { spawn, type ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const START_MS = 60_000;

/** Path of this checkout's Python; `ARP_PYTHON` names another one. */
export const PYTHON = process.env.ARP_PYTHON ?? `${ROOT}.venv/bin/python`;

export const hasPython = existsSync(PYTHON);

/** A running server. */
export class ArpServer {
  readonly url: string;
  readonly #process: ChildProcess;

  private constructor(process: ChildProcess, url: string) {
    this.#process = process;
    this.url = url;
  }

  /** Start a server for a file with an app. */
  static async start(app: string, ...flags: string[]): Promise<ArpServer> {
    const given = ["-m", "arp.cli", "serve", app, "--port", "0", "--ledger", "memory:", ...flags];
    const child = spawn(PYTHON, given, { cwd: ROOT, env: { ...process.env, PYTHONPATH: ROOT } });
    let received = "";
    const url = await new Promise<string>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no server: ${received}`)), START_MS);
      const receive = (data: Buffer) => {
        received += String(data);
        const found = /ARP on (http:\S+)/.exec(received);
        if (!found) return;
        clearTimeout(timer);
        resolve(found[1] as string);
      };
      child.stdout.on("data", receive);
      child.stderr.on("data", receive);
      child.on("exit", (code) => reject(new Error(`the server ended (${code}): ${received}`)));
    });
    return new ArpServer(child, url);
  }

  /** End the server with one or several signals, if it runs, and wait until it has ended. */
  async stop(...signals: NodeJS.Signals[]): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const ended = new Promise((resolve) => this.#process.once("exit", resolve));
    for (const signal of signals.length === 0 ? (["SIGTERM"] as const) : signals) this.#process.kill(signal);
    await ended;
  }
}
