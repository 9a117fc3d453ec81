import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    globalSetup: "src/needs.ts",
    include: ["tests/**/*.test.ts"],
    testTimeout: 60_000,
    // On a machine that others load a browser may miss a limit once; what fails twice is wrong.
    retry: process.env.CI ? 1 : 0,
    hookTimeout: 120_000,
    maxWorkers: 2,
    diff: { expand: false },
  },
});
