/** Verification of webhooks, as Standard Webhooks specifies it: `v1` HMAC, and `v1a` Ed25519. */

import { createHmac, createPublicKey, timingSafeEqual, verify } from "node:crypto";
import { ClaimLedgerError } from "./errors.js";
import type { CloudEvent } from "./generated/types.gen.js";

export class WebhookVerificationError extends ClaimLedgerError {
  override name = "WebhookVerificationError";
}

export type WebhookHeaders = Headers | Record<string, string | string[] | undefined>;

export interface VerifyOptions {
  /** How far `webhook-timestamp` may be from now; default: five minutes. */
  toleranceSeconds?: number;
  /** Milliseconds since 1970; default: the clock. */
  now?: number;
}

/**
 * Return the event of a webhook, or throw WebhookVerificationError if nobody with these keys sent it.
 *
 * `body` is what arrived, byte for byte: do not parse it first. `keys` are `whsec_…` secrets or
 * `whpk_…` public keys; one that fits is enough, so that both of a rotation can be given.
 * An event can arrive more than once: its `id` is the same each time.
 */
export function verifyWebhook(
  body: string | Uint8Array,
  headers: WebhookHeaders,
  keys: string | readonly string[],
  { toleranceSeconds = 300, now = Date.now() }: VerifyOptions = {},
): CloudEvent {
  const [id, timestamp, signatures] = ["id", "timestamp", "signature"].map((name) =>
    header(headers, `webhook-${name}`),
  ) as [string, string, string];
  if (!/^\d{1,12}$/.test(timestamp)) throw refused("webhook-timestamp is no time");
  if (Math.abs(now / 1_000 - Number(timestamp)) > toleranceSeconds)
    throw refused("webhook-timestamp is too far from now");
  const signed = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), Buffer.from(body as string)]);
  const given = signatures.split(" ");
  const checks = [keys].flat().map((key) => check(key, signed));
  if (!given.some((one) => checks.some((fits) => fits(one)))) throw refused("no signature fits");
  return JSON.parse(Buffer.from(body as string).toString("utf8")) as CloudEvent;
}

type Check = (signature: string) => boolean;

/** Return the check of one signature by one key. */
function check(key: string, signed: Buffer): Check {
  const [, kind, encoded = ""] = /^(whsec|whpk)_([A-Za-z0-9+/]+={0,2})$/.exec(key) ?? [];
  const bytes = Buffer.from(encoded, "base64");
  if (kind === "whsec") {
    const expected = createHmac("sha256", bytes).update(signed).digest();
    return bySignature("v1", (one) => one.length === 32 && timingSafeEqual(one, expected));
  }
  if (kind !== "whpk" || bytes.length !== 32)
    throw new WebhookVerificationError("A key is neither whsec_… nor whpk_….");
  const jwk = { kty: "OKP", crv: "Ed25519", x: bytes.toString("base64url") };
  const publicKey = createPublicKey({ key: jwk, format: "jwk" });
  return bySignature("v1a", (one) => verify(null, signed, publicKey, one));
}

function bySignature(version: string, fits: (signature: Buffer) => boolean): Check {
  return (given) => {
    const [label, encoded, ...more] = given.split(",");
    return label === version && !!encoded && !more.length && fits(Buffer.from(encoded, "base64"));
  };
}

function header(headers: WebhookHeaders, name: string): string {
  const value = headers instanceof Headers ? headers.get(name) : valueOf(headers, name);
  if (typeof value !== "string" || !value) throw refused(`there is no ${name}`);
  return value;
}

function valueOf(headers: Record<string, string | string[] | undefined>, name: string) {
  return Object.entries(headers).find(([given]) => given.toLowerCase() === name)?.[1];
}

function refused(why: string): WebhookVerificationError {
  return new WebhookVerificationError(`Not a webhook of the service: ${why}.`);
}
