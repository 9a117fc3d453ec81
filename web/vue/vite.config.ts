import { defineConfig } from "vitest/config";

export default defineConfig({
  build: {
    lib: { entry: { index: "src/index.ts", ui: "src/ui.ts" }, formats: ["es"] },
    rolldownOptions: {
      external: /^(?:@agent-rendering|vue)(?:\/|$)/,
      output: { preserveModules: true, preserveModulesRoot: "src" },
    },
    target: "es2022",
    minify: false,
    sourcemap: true,
  },
  test: { include: ["tests/**/*.test.ts"], testTimeout: 20_000, retry: process.env.CI ? 1 : 0 },
});
