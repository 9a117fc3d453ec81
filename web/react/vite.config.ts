import { defineConfig } from "vitest/config";

export default defineConfig({
  build: {
    lib: { entry: { index: "src/index.ts", ui: "src/ui.ts" }, formats: ["es"] },
    rolldownOptions: {
      external: /^(?:@agent-rendering|react|react-dom)(?:\/|$)/,
      // Hooks run in the browser; frameworks with server components need this directive.
      output: { preserveModules: true, preserveModulesRoot: "src", banner: '"use client";' },
    },
    target: "es2022",
    minify: false,
    sourcemap: true,
  },
  test: { include: ["tests/**/*.test.{ts,tsx}"], testTimeout: 20_000, retry: process.env.CI ? 1 : 0 },
});
