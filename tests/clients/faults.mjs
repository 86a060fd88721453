// Creates claims through the fault server with the installed package, every tenth with a document, and
// lists them; prints what it was answered. A call that fails after all its attempts ends it.
import { ClaimLedger } from "claim-ledger-client";

const { CLAIMS_API_URL, CLAIMS_API_KEY, CLAIMS_ENTITY_ID, CLAIMS, AT_ONCE, TIMEOUT_MS } = process.env;
// More attempts than by default: on a machine that is busy even a good answer can come too late.
const limits = { timeoutMs: Number(TIMEOUT_MS), maxRetries: 40 };
const client = new ClaimLedger(CLAIMS_API_KEY, { baseUrl: CLAIMS_API_URL, ...limits });
const created = {};
let next = 0;

async function create(number) {
  const claim = {
    entity_id: CLAIMS_ENTITY_ID,
    partner_claim_id: `fault-${number}`,
    defendant: { name: "Debtor Ltd" },
    invoices: [{ number: `INV-${number}`, total_amount_for_invoice: "10.00" }],
  };
  if (number % 10 === 0) {
    const { entity_id, partner_claim_id } = claim;
    const content = new TextEncoder().encode(`%PDF-1.7 ${number}`);
    const file = { filename: "invoice.pdf", mime_type: "application/pdf", content };
    const reference = await client.uploadDocument({ entity_id, partner_claim_id, ...file });
    claim.document_refs = [reference];
  }
  const { claim_id } = await client.createClaim(claim);
  created[claim.partner_claim_id] = claim_id;
}

async function work() {
  while (next < Number(CLAIMS)) await create(next++);
}

await Promise.all(Array.from({ length: Number(AT_ONCE) }, work));
const listed = {};
for await (const claim of client.iterateClaims({ entity_id: CLAIMS_ENTITY_ID, limit: 100 }))
  listed[claim.partner_claim_id] = claim.claim_id;
console.log(JSON.stringify({ created, listed }));
