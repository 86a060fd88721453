import { ConnectionError, UploadError } from "./errors.js";
import type { DocumentRef, UploadRequest, UploadResponse } from "./generated/types.gen.js";
import type { CallOptions } from "./operation.js";
import { retried } from "./retrying.js";
import { exchange } from "./transport.js";

export interface Upload extends Omit<UploadRequest, "max_bytes"> {
  /** The file: bytes, or a Blob such as `fs.openAsBlob` returns, which is read as it is sent. */
  content: Uint8Array | Blob;
}

type Mint = (body: UploadRequest, options: CallOptions) => Promise<UploadResponse>;

const MINTS_MAX = 4;
const TIMEOUT_MS = 300_000;
const FORBIDDEN = 403;
const RETRIED_STATUSES = [408, 429, 500, 502, 503, 504];

/**
 * Upload a file and return its reference for `document_refs`.
 *
 * A URL is written once: where the answer to a PUT was lost, the next one is refused with 403, and
 * the file goes to a URL that is minted anew.
 */
export async function upload(
  mint: Mint,
  { content, ...asked }: Upload,
  options: CallOptions,
  maxRetries: number,
): Promise<DocumentRef> {
  const size = content instanceof Blob ? content.size : content.byteLength;
  const max_bytes = Math.max(1, size); // of an empty file, too: there is no smaller one
  for (let mints = 1; ; mints++) {
    const minted = await mint({ ...asked, max_bytes }, options);
    const send = () => put(minted, content, options);
    const status = await retried(send, isRetried, maxRetries, options.signal);
    if (status < 300) {
      const { storage_path } = minted;
      return { storage_path, mime_type: asked.mime_type, filename: asked.filename };
    }
    if (status !== FORBIDDEN || mints === MINTS_MAX) throw new UploadError(status);
  }
}

/** Send the file once and return the answer's status; throw those that are worth another try. */
async function put(
  { upload_url, method, required_headers }: UploadResponse,
  content: Upload["content"],
  { signal, timeoutMs = TIMEOUT_MS }: CallOptions,
): Promise<number> {
  const request: RequestInit = { method, headers: required_headers, body: content };
  return exchange(upload_url, request, timeoutMs, signal, async ({ status, body }) => {
    await body?.cancel();
    if (RETRIED_STATUSES.includes(status)) throw new UploadError(status);
    return status;
  });
}

function isRetried(error: unknown): boolean {
  return error instanceof UploadError || error instanceof ConnectionError;
}
