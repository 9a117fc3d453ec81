import { defineConfig } from "vitest/config";

export default defineConfig({
  build: {
    lib: {
      entry: {
        index: "src/index.ts",
        "components/index": "src/components/index.ts",
        "chat/index": "src/chat/index.ts",
        "chat/sessions/sessions": "src/chat/sessions/sessions.ts",
        places: "src/places.ts",
      },
      formats: ["es"],
    },
    // Packages stay outside, ours stay files of their own: bundlers take what is used.
    rolldownOptions: {
      external: /^(?:@agent-rendering\/core|diff|lit|lowlight|highlight\.js|marked|temml)(?:\/|$)/,
      output: { preserveModules: true, preserveModulesRoot: "src" },
    },
    target: "es2022",
    // What our styles are written in: light-dark() and colours made of others stay as they are.
    cssTarget: ["chrome123", "firefox128", "safari17.5"],
    minify: false,
    cssMinify: true,
    sourcemap: true,
  },
  test: {
    include: ["tests/**/*.test.ts"],
    environment: "happy-dom",
    css: true,
    testTimeout: 60_000,
    maxWorkers: 2,
    // On a machine that others load a browser may miss a limit once; what fails twice is wrong.
    retry: process.env.CI ? 1 : 0,
  },
});
