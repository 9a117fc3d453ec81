import { suite } from "../src/applications.js";

suite("React 18", "18", {
  framework: "react",
  versions: { react: "^18.3.1", "react-dom": "^18.3.1", "@types/react": "^18.3.0", "@types/react-dom": "^18.3.0" },
});
