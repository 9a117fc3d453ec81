/** Styles of answers and their activity, loaded with the first element that shows some. */

import "../../style/content.js";
import styles from "./message.css?inline";
import { addChatStyles } from "../styles.js";

addChatStyles("message", styles);
