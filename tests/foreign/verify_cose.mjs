// Verify a COSE receipt with @transmute/cose, which knows no EdDSA: Node's own crypto has the last word.
// node verify_cose.mjs PACKAGES RECEIPT ENTRY PUBLIC_KEY_PEM
import { createPublicKey, verify } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

const [packages, receipt, entry, pem] = process.argv.slice(2)
const { cbor, receipt: receipts } = createRequire(`${packages}/`)('@transmute/cose')
const key = createPublicKey(readFileSync(pem))
const verifier = {
  verify: ({ coseSign1, payload }) => {
    const [head, , , signature] = cbor.decode(coseSign1).value
    const signed = cbor.encode(['Signature1', head, cbor.EMPTY_BUFFER, cbor.toArrayBuffer(payload)])
    if (!verify(null, signed, key, signature)) throw new Error('the signature does not hold')
    return Buffer.from(payload).toString('hex')
  }
}
const leaf = await receipts.leaf(readFileSync(entry))
console.log(await receipts.inclusion.verify({ entry: leaf, receipt: readFileSync(receipt), verifier }))
