import { defineConfig } from "vitest/config";

export default defineConfig({
  build: {
    lib: {
      entry: {
        index: "src/index.ts",
        export: "src/export.ts",
        strings: "src/strings.ts",
        printed: "src/printed.ts",
        canonical: "src/canonical.ts",
        chat: "src/chat.ts",
        timeline: "src/timeline.ts",
        surfaces: "src/surfaces.ts",
        permissions: "src/permissions.ts",
        history: "src/history.ts",
      },
      formats: ["es"],
    },
    // One file for each of ours: bundlers take what is used, and readers find what they know.
    rolldownOptions: { output: { preserveModules: true, preserveModulesRoot: "src" } },
    target: "es2022",
    minify: false,
    sourcemap: true,
  },
  test: { include: ["tests/**/*.test.ts"], testTimeout: 20_000, retry: process.env.CI ? 1 : 0 },
});
