import { read } from "./answers.js";
import { ClaimLedgerError, ConnectionError, TimeoutError } from "./errors.js";
import { RETRY, VERSION } from "./generated/operations.gen.js";
import type { CallOptions, Input, Operation } from "./operation.js";
import { isRetried, retried } from "./retrying.js";

/** Faults of a connection that was never made, so that nothing was sent. */
const NEVER_CONNECTED = new Set([
  "EAI_AGAIN",
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "UND_ERR_CONNECT_TIMEOUT",
]);

export interface Limits {
  timeoutMs: number;
  maxRetries: number;
}

/** Sends requests, again where the document allows it. Its key is in no field that can be shown. */
export class Transport {
  readonly #key: string;
  readonly #baseUrl: string;
  readonly #limits: Limits;

  constructor(key: string, baseUrl: string, limits: Limits) {
    this.#key = key;
    this.#baseUrl = baseUrl;
    this.#limits = limits;
  }

  /** Return the answer to an operation, after as many attempts as it takes and may take. */
  async call(operation: Operation, input: Input, options: CallOptions): Promise<unknown> {
    const url = this.#baseUrl + target(operation.path, input);
    const request = this.#request(operation, input);
    const attempt = () =>
      exchange(url, request, this.#timeout(options), options.signal, (response) =>
        read(response, operation),
      );
    const again = (error: unknown) => isRetried(error, operation.retry, RETRY);
    return retried(attempt, again, this.#retries(options), options.signal);
  }

  #request(operation: Operation, input: Input): RequestInit {
    const headers: Record<string, string> = {
      accept: "application/json",
      authorization: `Bearer ${this.#key}`,
      "user-agent": USER_AGENT,
    };
    if (input.body === undefined) return { method: operation.method, headers };
    headers["content-type"] = "application/json";
    return { method: operation.method, headers, body: JSON.stringify(input.body) };
  }

  #timeout(options: CallOptions): number {
    return options.timeoutMs ?? this.#limits.timeoutMs;
  }

  #retries(options: CallOptions): number {
    return options.maxRetries ?? this.#limits.maxRetries;
  }
}

export const USER_AGENT = `claim-ledger-client-typescript/${VERSION} ${runtime()}`;

function runtime(): string {
  const { process } = globalThis as { process?: { versions?: { node?: string } } };
  return process?.versions?.node ? `node/${process.versions.node}` : "unknown";
}

/** Send one request and use its answer, both within `timeoutMs`; redirects are not followed. */
export async function exchange<Answer>(
  url: string,
  request: RequestInit,
  timeoutMs: number,
  signal: AbortSignal | undefined,
  use: (response: Response) => Promise<Answer>,
): Promise<Answer> {
  const timeout = AbortSignal.timeout(timeoutMs);
  const either = signal ? AbortSignal.any([signal, timeout]) : timeout;
  try {
    return await use(await fetch(url, { ...request, redirect: "manual", signal: either }));
  } catch (error) {
    if (error instanceof ClaimLedgerError) throw error;
    if (signal?.aborted) throw signal.reason;
    if (timeout.aborted) throw new TimeoutError(`No answer within ${timeoutMs} ms.`, true);
    if (!(error instanceof TypeError)) throw error;
    const code = codeOf(error.cause);
    const connected = !NEVER_CONNECTED.has(code);
    throw new ConnectionError(`No answer (${code || error.message}).`, connected, { cause: error });
  }
}

function codeOf(cause: unknown): string {
  if (typeof cause !== "object" || cause === null) return "";
  return "code" in cause && typeof cause.code === "string" ? cause.code : "";
}

function target(path: string, { parameters = {} }: Input): string {
  const query = new Map(Object.entries(parameters));
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = query.get(name);
    query.delete(name);
    return encodeURIComponent(String(value));
  });
  const search = new URLSearchParams();
  for (const [name, value] of query) if (value != null) search.set(name, String(value));
  return search.size ? `${filled}?${search}` : filled;
}
