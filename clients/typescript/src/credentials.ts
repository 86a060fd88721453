import { ConfigurationError } from "./errors.js";

const KEY = /^pk_(live|test)_[\x21-\x2d\x2f-\x7e]+\.[\x21-\x2d\x2f-\x7e]+\.[\x21-\x2d\x2f-\x7e]+$/;
const LOOPBACK = new Set(["localhost", "127.0.0.1", "[::1]"]);

export type Mode = "live" | "test";

/** Return the mode of a key. The error of a malformed one does not have the key. */
export function modeOf(key: string | undefined): Mode {
  const found = KEY.exec(key ?? "");
  if (!found) {
    throw new ConfigurationError(
      "The API key is malformed: expected pk_live_<partner>.<key>.<secret>, or pk_test_.",
    );
  }
  return found[1] as Mode;
}

/** Return the base address without its last slash; a key goes over TLS, or stays on this machine. */
export function addressOf(baseUrl: string | undefined): string {
  const url = baseUrl && URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  if (!url || url.username || url.search || url.hash)
    throw new ConfigurationError("`baseUrl` is not an address such as https://host/v1.");
  const loopback = url.protocol === "http:" && LOOPBACK.has(url.hostname);
  if (url.protocol !== "https:" && !loopback)
    throw new ConfigurationError("`baseUrl` has to begin with https://.");
  return url.href.replace(/\/+$/, "");
}

/** Refuse a live key where visitors of a page could read it. */
export function refuseBrowsers(mode: Mode): void {
  const scope = globalThis as { document?: unknown; WorkerGlobalScope?: unknown };
  if (mode === "live" && (scope.document !== undefined || scope.WorkerGlobalScope !== undefined))
    throw new ConfigurationError("A live key is a secret: keep it on a server, not in a browser.");
}
