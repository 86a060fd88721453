/** What the generated methods and the transport share. */

export interface CallOptions {
  /** Ends the call, its retries included; the call then throws `signal.reason`. */
  signal?: AbortSignal | undefined;
  /** For each attempt, the answer's body included; default: the client's. */
  timeoutMs?: number | undefined;
  /** How many attempts may follow the first; default: the client's. */
  maxRetries?: number | undefined;
}

export interface Input {
  /** Those of the path, by its names, and those of the query; null and undefined are left out. */
  parameters?: Record<string, string | number | boolean | null | undefined>;
  body?: unknown;
}

/** An answer, and what its headers say. It is beside the members: not in JSON, nor in a copy. */
export type Answered<Body> = Body & {
  /** For the service's support; it finds the request. */
  readonly requestId: string | undefined;
  /**
   * On a replay, whether its body was that of the first request; if not, nothing changed. Undefined
   * where nothing was compared: in all other answers, and after an erasure.
   */
  readonly payloadMatches: boolean | undefined;
};

/** `x-retry` of an operation. */
export interface OperationRetry {
  repeat: string;
  codes: readonly string[];
  /** Retried only where the answer has no `X-RateLimit-Limit`: nothing was done. */
  uncharged_codes?: readonly string[];
}

export interface Operation {
  method: string;
  path: string;
  /** Members that an answer has to have. */
  required: readonly string[];
  retry: OperationRetry;
}

/** `x-retry` of the document. */
export interface RetryRules {
  codes: Record<string, { retryable: boolean; after?: string }>;
  statuses: readonly number[];
}
