import { defineConfig } from "vitest/config";

export default defineConfig({
  build: {
    lib: {
      entry: { index: "src/index.ts" },
      formats: ["es"],
    },
    target: "es2022",
    minify: false,
    sourcemap: true,
  },
  test: { include: ["tests/**/*.test.ts"] },
});
