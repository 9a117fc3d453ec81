import type { ArpChat } from "../../elements/src/chat/chat.js";

declare global {
  interface HTMLElementTagNameMap {
    "arp-chat": ArpChat;
  }
}
