import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

const api = process.env.HEADRACE ?? "http://127.0.0.1:6767";

export default defineConfig({
  plugins: [svelte()],
  base: "./", // relative, so that the page also works where a proxy puts the server below a path
  build: {
    target: "es2022",
    assetsDir: "console", // the path that the server answers them at
    assetsInlineLimit: 0, // nothing as data: urls, so that the policy needs none for fonts and scripts
    modulePreload: { polyfill: false }, // the polyfill would be an inline script
    chunkSizeWarningLimit: 400,
  },
  worker: { format: "es" },
  server: { proxy: { "/api": api, "/events": api, "/metrics": api } },
});
