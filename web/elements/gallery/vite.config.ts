import { defineConfig } from "vite";

export default defineConfig({
  base: "./",
  build: {
    target: "es2022",
    cssTarget: ["chrome123", "firefox128", "safari17.5"],
    outDir: "dist",
    emptyOutDir: true,
    modulePreload: { polyfill: false },
  },
});
