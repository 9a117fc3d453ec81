import { defineConfig } from "vite";

/** All that a page without a build step wants, in one folder: `<script type="module" src="…/arp.js">`. */
export default defineConfig({
  build: {
    outDir: "dist/standalone",
    lib: { entry: { arp: "src/index.ts" }, formats: ["es"] },
    // What is loaded late stays a file of its own.
    rolldownOptions: { output: { entryFileNames: "arp.js", chunkFileNames: "[name]-[hash].js", minify: true } },
    target: "es2022",
    cssTarget: ["chrome123", "firefox128", "safari17.5"], // as of the packages: light-dark() stays as it is
    cssMinify: true,
    sourcemap: false,
  },
});
