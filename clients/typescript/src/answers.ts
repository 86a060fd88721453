import { ApiError, type Details, IncompatibleAnswerError, UnexpectedAnswerError } from "./errors.js";
import type { Operation } from "./operation.js";

const BYTES_MAX = 16 * 1024 * 1024;

/** Return the answer's object (an `Answered`), or throw what it means. */
export async function read(response: Response, operation: Operation): Promise<unknown> {
  const body = parsed(await textOf(response));
  const requestId = response.headers.get("x-request-id") ?? undefined;
  if (response.ok && body && operation.required.every((name) => name in body)) {
    const match = response.headers.get("idempotent-payload-match");
    const payloadMatches = match === null ? undefined : match === "true";
    return Object.defineProperties(body, {
      requestId: { value: requestId },
      payloadMatches: { value: payloadMatches },
    });
  }
  // Every answer of the API has an id, and a proxy's seldom.
  if (response.ok && body && requestId) throw new IncompatibleAnswerError(response.status, requestId);
  throw fault(response, body, requestId);
}

/** Return an answer's text; a stranger's that has no end is given up. */
async function textOf(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  const reader = response.body?.getReader();
  let text = "";
  for (let bytes = 0; reader; ) {
    const { done, value } = await reader.read();
    if (done) break;
    bytes += value.byteLength;
    if (bytes > BYTES_MAX) {
      await reader.cancel();
      return "";
    }
    text += decoder.decode(value, { stream: true });
  }
  return text + decoder.decode();
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function fault(
  { ok, status, headers }: Response,
  body: Record<string, unknown> | undefined,
  requestId: string | undefined,
): Error {
  const after = seconds(headers.get("retry-after"));
  if (ok || typeof body?.code !== "string") {
    const message = `An answer with ${status} that is not the API's.`;
    return new UnexpectedAnswerError(message, status, requestId, after);
  }
  const details = isObject(body.details) ? (body.details as Details) : undefined;
  const charged = headers.has("x-ratelimit-limit");
  const message = String(body.message ?? "");
  return new ApiError(body.code, status, message, details, requestId, after, charged);
}

/** Return the seconds of `Retry-After`, which a proxy may write as a date. */
function seconds(header: string | null): number | undefined {
  if (header === null) return undefined;
  if (/^\d+$/.test(header)) return Number(header);
  const until = Date.parse(header);
  return Number.isNaN(until) ? undefined : Math.max(0, (until - Date.now()) / 1_000);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
