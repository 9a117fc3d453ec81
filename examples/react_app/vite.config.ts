import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// The page and the agent have one address: what begins so goes on to `arp serve`.
const agent = process.env.ARP_URL ?? "http://127.0.0.1:8080";
const proxy = { "/_arp": { target: agent, ws: true }, "/_api": agent };

export default defineConfig({ plugins: [react()], server: { proxy }, preview: { proxy } });
