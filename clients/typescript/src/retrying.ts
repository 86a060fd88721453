import { ApiError, ConnectionError, IncompatibleAnswerError, UnexpectedAnswerError } from "./errors.js";
import type { OperationRetry, RetryRules } from "./operation.js";

const BACKOFF_MS = 250;
const BACKOFF_MS_MAX = 8_000;
/** A `Retry-After` that is longer is the caller's to wait for. */
const RETRY_AFTER_SECONDS_MAX = 120;

/** Repeat an attempt as long as its error is one to retry, at most `maxRetries` times. */
export async function retried<Answer>(
  attempt: () => Promise<Answer>,
  again: (error: unknown) => boolean,
  maxRetries: number,
  signal?: AbortSignal,
): Promise<Answer> {
  for (let done = 0; ; done++) {
    try {
      return await attempt();
    } catch (error) {
      const after = retryAfter(error);
      if (done >= maxRetries || !again(error) || after > RETRY_AFTER_SECONDS_MAX) throw error;
      // Those who were told the same second do not come back in the same millisecond.
      await sleep(after * 1_000 + backoff(done), signal);
    }
  }
}

function backoff(attempt: number): number {
  return Math.min(BACKOFF_MS_MAX, BACKOFF_MS * 2 ** attempt) * (0.5 + Math.random() / 2);
}

/** Return whether the identical request may be sent again, by the rules of the document. */
export function isRetried(error: unknown, rule: OperationRetry, rules: RetryRules): boolean {
  const safe = rule.repeat === "safe";
  if (error instanceof ApiError) {
    if (rule.codes.includes(error.code)) return true;
    if (rule.uncharged_codes?.includes(error.code)) return !error.charged;
    return safe && !Object.hasOwn(rules.codes, error.code) && rules.statuses.includes(error.status);
  }
  if (error instanceof ConnectionError) return safe || !error.connected;
  if (error instanceof IncompatibleAnswerError) return false;
  if (error instanceof UnexpectedAnswerError)
    return safe && (error.status < 300 || rules.statuses.includes(error.status));
  return false;
}

function retryAfter(error: unknown): number {
  const given = error instanceof ApiError || error instanceof UnexpectedAnswerError;
  return (given && error.retryAfter) || 0;
}

/** Wait, or throw the signal's reason as soon as it is aborted. */
function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
