import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { ApiError, ClaimLedger, ConnectionError, TimeoutError } from "../src/index.js";
import { IncompatibleAnswerError, UnexpectedAnswerError } from "../src/index.js";
import { CLAIM, cut, json, KEY, LINK, refusal, serve, silence } from "./server.js";

const CREATE = {
  entity_id: "ent_1",
  partner_claim_id: "case-1",
  defendant: { name: "Debtor Ltd" },
  invoices: [{ number: "INV-1", total_amount_for_invoice: "1250.00" }],
};
const CONNECT = { partner_user_id: "user-1" };
const ONCE = { maxRetries: 0 };

test("a call sends the key, the user agent and the body", async () => {
  const { client, sent } = await serve(json(201, CLAIM));
  assert.deepEqual(await client().createClaim(CREATE), CLAIM);
  const [one] = sent;
  assert.equal(`${one?.method} ${one?.path}`, "POST /v1/claims");
  assert.equal(one?.headers.authorization, `Bearer ${KEY}`);
  assert.match(one?.headers["user-agent"] ?? "", /^claim-ledger-client-typescript\/[\d.]+ node\//);
  assert.deepEqual(JSON.parse(one?.body ?? ""), CREATE);
});

test("an answer has its request id, and whether a repeat has the body of the first", async () => {
  const match = (value: string) => ({ "idempotent-payload-match": value });
  const { client } = await serve(
    json(201, CLAIM, { "x-request-id": "req_1" }),
    json(200, CLAIM, match("true")),
    json(200, CLAIM, match("false")),
  );
  const answers = [];
  for (let call = 0; call < 3; call++) answers.push(await client().createClaim(CREATE));
  assert.deepEqual(answers.map((one) => one.requestId), ["req_1", undefined, undefined]);
  assert.deepEqual(answers.map((one) => one.payloadMatches), [undefined, true, false]);
  assert.deepEqual(JSON.parse(JSON.stringify(answers)), [CLAIM, CLAIM, CLAIM]);
});

test("a refusal has its code, details and request id, and is not repeated", async () => {
  const details = { formErrors: [], fieldErrors: { invoices: ["required"] } };
  const { client, sent } = await serve(
    refusal(400, "validation_failed", { "x-request-id": "req_1" }, { details }),
  );
  const error = await client().createClaim(CREATE).catch((one: unknown) => one);
  assert.ok(error instanceof ApiError);
  assert.deepEqual(
    [error.code, error.status, error.details, error.requestId],
    ["validation_failed", 400, details, "req_1"],
  );
  assert.equal(sent.length, 1);
});

test("codes that the document says are retried", async () => {
  const { client, sent } = await serve(
    refusal(409, "claim_conflict"),
    refusal(500, "internal_error"),
    refusal(503, "document_verification_failed", { "retry-after": "0" }),
    json(200, CLAIM),
  );
  assert.deepEqual(await client().createClaim(CREATE), CLAIM);
  assert.equal(new Set(sent.map((one) => one.body)).size, 1);
  assert.equal(sent.length, 4);
});

test("the next attempt is not before Retry-After", async () => {
  const { client, sent } = await serve(
    refusal(429, "rate_limited", { "retry-after": "1" }),
    json(201, CLAIM),
  );
  await client().createClaim(CREATE);
  const [first, second] = sent.map((one) => one.at);
  assert.ok((second as number) - (first as number) >= 1_000);
});

test("a Retry-After of minutes is the caller's to wait for", async () => {
  const { client, sent } = await serve(refusal(503, "service_unavailable", { "retry-after": "900" }));
  const error = await client().createClaim(CREATE).catch((one: unknown) => one);
  assert.ok(error instanceof ApiError && error.retryAfter === 900);
  assert.equal(sent.length, 1);
});

test("what is not the API's answer is retried: cut, wrong JSON, another shape, a proxy's", async () => {
  const { client, sent } = await serve(
    cut,
    json(201, '{"claim_id": "cl'),
    json(201, []),
    json(201, { claim_id: "clm_1" }),
    json(502, "<html>Bad Gateway</html>"),
    json(201, CLAIM),
  );
  assert.deepEqual(await client().createClaim(CREATE), CLAIM);
  assert.equal(sent.length, 6);
});

test("what may be null may be absent, as in an answer of an older release", async () => {
  const { claim_id, document_ids, already_existed } = CLAIM;
  const { client, sent } = await serve(
    json(201, { claim_id, document_ids, already_existed }),
    json(200, { claims: [{ stage: "triage" }], entity_disconnected: false }),
  );
  assert.equal((await client().createClaim(CREATE)).message_id, undefined);
  for await (const claim of client().iterateClaims({ entity_id: "ent_1" }))
    assert.equal(claim.stage, "triage");
  assert.equal(sent.length, 2);
});

test("an answer of the API that cannot be read is not asked for again", async () => {
  const { client, sent } = await serve(json(201, { claim_id: "clm_1" }, { "x-request-id": "req_1" }));
  const error = await client().createClaim(CREATE).catch((one: unknown) => one);
  assert.ok(error instanceof IncompatibleAnswerError && error.requestId === "req_1");
  assert.equal(sent.length, 1);
});

test("an answer without end is given up, and a date in Retry-After is waited for", async () => {
  const endless = await serve((response) => {
    const chunk = Buffer.alloc(1024 * 1024, " ");
    const more = () => {
      while (response.write(chunk));
    };
    response.on("drain", more);
    more();
  });
  await assert.rejects(endless.client(ONCE).createClaim(CREATE), UnexpectedAnswerError);
  const date = new Date(Date.now() + 3_600_000).toUTCString();
  const later = await serve(json(503, "", { "retry-after": date }));
  await assert.rejects(later.client().createClaim(CREATE), UnexpectedAnswerError);
  assert.equal(later.sent.length, 1);
});

test("a connect request is repeated only where no link can have been minted", async () => {
  const charged = { "x-ratelimit-limit": "120" };
  const { client, sent } = await serve(
    refusal(429, "rate_limited", { "retry-after": "0", ...charged }),
    refusal(503, "service_unavailable", { "retry-after": "0" }),
    json(201, LINK),
  );
  assert.deepEqual(await client().requestConnection(CONNECT), LINK);
  assert.equal(sent.length, 3);
  for (const answer of [cut, refusal(500, "internal_error"), json(201, "{"), json(502, "")]) {
    const once = await serve(answer, json(201, LINK));
    await assert.rejects(once.client().requestConnection(CONNECT));
    assert.equal(once.sent.length, 1);
  }
  const late = await serve(refusal(503, "service_unavailable", charged), json(201, LINK));
  await assert.rejects(late.client().requestConnection(CONNECT), ApiError);
  late.end();
  const error = await late.client(ONCE).requestConnection(CONNECT).catch((one: unknown) => one);
  assert.ok(error instanceof ConnectionError && !error.connected);
});

test("an unknown code or stage is passed on", async () => {
  const { client } = await serve(refusal(418, "teapot"), refusal(503, "nap"), json(200, page("new")));
  const teapot = await client().listClaims({ entity_id: "ent_1" }).catch((one: unknown) => one);
  assert.ok(teapot instanceof ApiError && teapot.code === "teapot");
  const { claims } = await client().listClaims({ entity_id: "ent_1" });
  assert.equal(claims[0]?.stage, "new");
});

test("a parameter of the path is part of the address, whatever it has", async () => {
  const { client, sent } = await serve(refusal(404, "claim_not_found"));
  await assert.rejects(client().getClaim({ claim_id: "clm/1?x" }), ApiError);
  assert.equal(sent[0]?.path, "/v1/claims/clm%2F1%3Fx");
});

test("a parameter that is null is left out, as one that is undefined", async () => {
  const { client, sent } = await serve(json(200, page("triage")));
  // As JavaScript, or a row of a database, gives it: the types have no null.
  const given = { entity_id: "ent_1", page_token: null as never, partner_user_id: undefined as never };
  await client().listClaims(given);
  assert.equal(sent[0]?.path, "/v1/claims?entity_id=ent_1");
});

test("pages follow each other until there is none", async () => {
  const { client, sent } = await serve(json(200, page("triage", "clm_1")), json(200, page("closed")));
  const stages = [];
  for await (const claim of client().iterateClaims({ entity_id: "e&1", limit: 1 }))
    stages.push(claim.stage);
  assert.deepEqual(stages, ["triage", "closed"]);
  assert.deepEqual(
    sent.map((one) => one.path),
    [
      "/v1/claims?entity_id=e%261&limit=1",
      "/v1/claims?entity_id=e%261&limit=1&page_token=clm_1",
    ],
  );
});

test("events follow each other until there are no later ones", async () => {
  const pages = ["1", "2"].map((at) => ({ events: [{ id: at }], next_cursor: `after-${at}` }));
  const { client, sent } = await serve(
    ...pages.map((one) => json(200, one)),
    json(200, { events: [], next_cursor: "after-2" }),
  );
  const cursors = [];
  for await (const { next_cursor } of client().eventPages({ limit: 1 })) cursors.push(next_cursor);
  assert.deepEqual(cursors, ["after-1", "after-2"]);
  assert.equal(sent.at(-1)?.path, "/v1/events?limit=1&after=after-2");
});

test("no answer in time is a TimeoutError, and a redirect is not followed", async () => {
  const mute = await serve(silence);
  const quick = mute.client({ timeoutMs: 50, ...ONCE });
  await assert.rejects(quick.createClaim(CREATE), TimeoutError);
  const moved = await serve(json(307, "", { location: "/elsewhere" }));
  await assert.rejects(moved.client().createClaim(CREATE), UnexpectedAnswerError);
  assert.equal(moved.sent.length, 1);
});

test("a signal ends a call, also one that waits", async () => {
  const { client } = await serve(refusal(429, "rate_limited", { "retry-after": "60" }));
  const reason = new Error("enough");
  const waiting = new AbortController();
  const call = client().createClaim(CREATE, { signal: waiting.signal });
  setTimeout(() => waiting.abort(reason), 100);
  await assert.rejects(call, reason);
  const early = client().createClaim(CREATE, { signal: AbortSignal.abort(reason) });
  await assert.rejects(early, reason);
});

test("the key is in nothing that is shown", async () => {
  const { client } = await serve(refusal(401, "auth_revoked"), cut);
  const one = client(ONCE);
  const errors = [
    await one.createClaim(CREATE).catch((error: unknown) => error),
    await one.createClaim(CREATE).catch((error: unknown) => error),
    caught(() => new ClaimLedger(`${KEY}\n`, { baseUrl: "https://example.com/v1" })),
  ];
  for (const value of [one, ...errors]) {
    assert.ok(value);
    const shown = inspect(value, { depth: 9, showHidden: true, getters: true }) + JSON.stringify(value);
    assert.doesNotMatch(shown, /SECRET/);
  }
});

test("a live key stays on servers, and goes over TLS or nowhere", () => {
  const live = KEY.replace("test", "live");
  const baseUrl = "https://example.com/v1";
  assert.equal(new ClaimLedger(live, { baseUrl: `${baseUrl}/` }).mode, "live");
  assert.throws(() => new ClaimLedger(live, { baseUrl: "http://example.com/v1" }), /https/);
  assert.throws(() => new ClaimLedger("sk_live_a.b.c", { baseUrl }), /malformed/);
  assert.throws(() => new ClaimLedger(undefined, { baseUrl }), /malformed/);
  assert.throws(() => new ClaimLedger(KEY, { baseUrl: undefined }), /address/);
  Object.assign(globalThis, { document: {} });
  try {
    assert.throws(() => new ClaimLedger(live, { baseUrl }), /browser/);
    assert.equal(new ClaimLedger(KEY, { baseUrl }).mode, "test");
  } finally {
    Reflect.deleteProperty(globalThis, "document");
  }
});

function page(stage: string, next_page_token: string | null = null): unknown {
  const state = { entity_disconnected: false, entity_disconnected_at: null };
  return { claims: [{ stage }], next_page_token, ...state };
}

function caught(act: () => unknown): unknown {
  try {
    return act();
  } catch (error) {
    return error;
  }
}
