import assert from "node:assert/strict";
import { test } from "node:test";
import { UploadError } from "../src/index.js";
import { type Answer, cut, json, serve } from "./server.js";

const FILE = {
  entity_id: "ent_1",
  partner_claim_id: "case-1",
  filename: "invoice.pdf",
  mime_type: "application/pdf",
  content: new TextEncoder().encode("%PDF-1.7"),
} as const;

/** Mints a URL of this server, numbered by the request. */
const mint: Answer = (response, { headers, body }) => {
  const { max_bytes } = JSON.parse(body) as { max_bytes: number };
  const minted = {
    upload_url: `http://${headers.host}/bucket?signature=s`,
    storage_path: `path-${minting++}`,
    method: "PUT",
    expires_at: "2026-01-01T00:00:00.000Z",
    required_headers: { "Content-Type": "application/pdf", "x-size": `0,${max_bytes}` },
  };
  json(201, minted)(response, { headers, body } as never);
};
let minting = 0;

test("a file is sent to storage without the key, and referred to", async () => {
  const { client, sent } = await serve(mint, json(200, ""));
  minting = 1;
  const reference = await client().uploadDocument(FILE);
  const { filename, mime_type } = FILE;
  assert.deepEqual(reference, { storage_path: "path-1", mime_type, filename });
  const put = sent[1];
  assert.deepEqual([put?.method, put?.path, put?.body], ["PUT", "/bucket?signature=s", "%PDF-1.7"]);
  assert.deepEqual([put?.headers["content-type"], put?.headers["x-size"]], ["application/pdf", "0,8"]);
  assert.equal(put?.headers.authorization, undefined);
});

test("an empty file is uploaded, too", async () => {
  const { client, sent } = await serve(mint, json(200, ""));
  await client().uploadDocument({ ...FILE, content: new Uint8Array() });
  assert.deepEqual([sent[1]?.headers["x-size"], sent[1]?.body], ["0,1", ""]);
});

test("after a lost answer the URL is used up, and another one is minted", async () => {
  const { client, sent } = await serve(mint, cut, json(403, ""), mint, json(503, ""), json(200, ""));
  minting = 1;
  const reference = await client().uploadDocument({ ...FILE, content: new Blob([FILE.content]) });
  assert.equal(reference.storage_path, "path-2");
  assert.deepEqual(
    sent.map((one) => one.method),
    ["POST", "PUT", "PUT", "POST", "PUT", "PUT"],
  );
});

test("a refusal of storage has its status and not the URL, which is a credential", async () => {
  for (const [status, requests] of [[400, 2], [403, 8]] as const) {
    const answers = Array.from({ length: 4 }, () => [mint, json(status, "")]).flat();
    const { client, sent } = await serve(...answers);
    const error = await client().uploadDocument(FILE).catch((one: unknown) => one);
    assert.ok(error instanceof UploadError && error.status === status);
    assert.doesNotMatch(String(error), /signature/);
    assert.equal(sent.length, requests);
  }
});
