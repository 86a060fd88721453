import assert from "node:assert/strict";
import { createHmac, generateKeyPairSync, sign } from "node:crypto";
import { test } from "node:test";
import { verifyWebhook, WebhookVerificationError } from "../src/webhooks.js";

const BODY = '{"test": 2432232314}';
const ID = "msg_p5jXN8AQM9LWM0D4loKWxJek";
const SECONDS = 1614265330;
const NOW = { now: SECONDS * 1_000 };
const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
const OTHER = `whsec_${Buffer.from("another secret of 24 byt").toString("base64")}`;

function headers(signature: string): Record<string, string> {
  return {
    "Webhook-Id": ID,
    "webhook-timestamp": String(SECONDS),
    "webhook-signature": signature,
  };
}

test("the published example of Standard Webhooks is accepted", () => {
  const expected = { test: 2432232314 };
  assert.deepEqual(verifyWebhook(BODY, headers(SIGNATURE), SECRET, NOW), expected);
  const bytes = new TextEncoder().encode(BODY);
  const given = new Headers(headers(`v1,AAAA ${SIGNATURE}`));
  assert.deepEqual(verifyWebhook(bytes, given, [OTHER, SECRET], NOW), expected);
});

test("an Ed25519 signature is accepted by its public key", () => {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const raw = publicKey.export({ format: "der", type: "spki" }).subarray(-32);
  const key = `whpk_${raw.toString("base64")}`;
  const signature = sign(null, Buffer.from(`${ID}.${SECONDS}.${BODY}`), privateKey);
  const given = `v1,AAAA v1a,${signature.toString("base64")}`;
  assert.deepEqual(verifyWebhook(BODY, headers(given), [OTHER, key], NOW), { test: 2432232314 });
  assert.throws(() => verifyWebhook(`${BODY} `, headers(given), key, NOW), WebhookVerificationError);
});

test("anything else is refused", () => {
  const asPublic = createHmac("sha256", "").update(`${ID}.${SECONDS}.${BODY}`).digest("base64");
  const refused: [string, Record<string, string>, string, object?][] = [
    [`${BODY} `, headers(SIGNATURE), SECRET],
    [BODY, headers(SIGNATURE), OTHER],
    [BODY, headers(SIGNATURE.replace("v1,", "v1a,")), SECRET],
    [BODY, headers(SIGNATURE.replace("v1,", "")), SECRET],
    [BODY, headers(""), SECRET],
    [BODY, headers(`v1,${asPublic}`), "whsec_"],
    [BODY, headers(SIGNATURE), "whpk_AAAA"],
    [BODY, { ...headers(SIGNATURE), "Webhook-Id": "msg_other" }, SECRET],
    [BODY, { ...headers(SIGNATURE), "webhook-timestamp": "soon" }, SECRET],
    [BODY, headers(SIGNATURE), SECRET, { now: (SECONDS + 301) * 1_000 }],
    [BODY, headers(SIGNATURE), SECRET, { now: (SECONDS - 301) * 1_000 }],
  ];
  for (const [body, given, key, options] of refused)
    assert.throws(() => verifyWebhook(body, given, key, { ...NOW, ...options }), WebhookVerificationError);
});
