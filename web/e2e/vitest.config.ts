import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    globalSetup: "src/needs.ts",
    include: ["tests/**/*.test.ts"],
    testTimeout: 60_000,
    // On a busy machine a browser may miss a limit once; a test that fails twice has found an error.
    retry: process.env.CI ? 1 : 0,
    hookTimeout: 120_000,
    maxWorkers: 2,
    diff: { expand: false },
  },
});
