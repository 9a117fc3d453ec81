import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["tests/**/*.test.ts"],
    globalSetup: "src/setup.ts",
    testTimeout: 120_000,
    // Time for packing, and for installing from a registry.
    hookTimeout: 900_000,
    expect: { poll: { timeout: 15_000 } },
    retry: process.env.CI ? 1 : 0,
    maxWorkers: 2,
  },
});
