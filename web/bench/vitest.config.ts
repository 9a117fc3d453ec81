import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["tests/**/*.test.ts"],
    globalSetup: "../fresh/src/setup.ts",
    testTimeout: 180_000,
    hookTimeout: 300_000,
    fileParallelism: false,
  },
});
