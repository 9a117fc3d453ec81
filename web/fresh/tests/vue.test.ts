import { suite } from "../src/applications.js";

suite("Vue 3.5", "3", { framework: "vue", versions: { vue: "~3.5.0" } });
