import { suite } from "../src/applications.js";

suite("React 19", "19", { framework: "react", versions: {} });
