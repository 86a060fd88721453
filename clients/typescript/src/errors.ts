import type { Error as Envelope } from "./generated/types.gen.js";

/** Codes of today; a later release may have more. */
export type ErrorCode = Envelope["code"];

/** Every fault, by field, of a `validation_failed`. */
export type Details = NonNullable<Envelope["details"]>;

/** Whatever the client throws, except the reason of a signal of yours. */
export class ClaimLedgerError extends Error {
  override name: string = "ClaimLedgerError";
}

/** The client was given something that it refuses, such as a live key in a browser. */
export class ConfigurationError extends ClaimLedgerError {
  override name = "ConfigurationError";
}

/** The API refused the request. Branch on `code`. */
export class ApiError extends ClaimLedgerError {
  override name = "ApiError";

  constructor(
    readonly code: ErrorCode,
    readonly status: number,
    message: string,
    readonly details: Details | undefined,
    /** For the service's support; it finds the request. */
    readonly requestId: string | undefined,
    /** Seconds of `Retry-After`, where the answer had it. */
    readonly retryAfter: number | undefined,
    /** Whether the request was counted against your rate limit, and so may have been done. */
    readonly charged: boolean,
  ) {
    super(`${code}: ${message}`);
  }
}

/** No answer came: whether the request was done is not known, unless `connected` is false. */
export class ConnectionError extends ClaimLedgerError {
  override name = "ConnectionError";

  constructor(
    message: string,
    readonly connected: boolean,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** No answer came in time. */
export class TimeoutError extends ConnectionError {
  override name = "TimeoutError";
}

/** An answer that is not the API's: of a proxy, cut off, or no JSON. */
export class UnexpectedAnswerError extends ClaimLedgerError {
  override name: string = "UnexpectedAnswerError";

  constructor(
    message: string,
    readonly status: number,
    readonly requestId: string | undefined,
    readonly retryAfter: number | undefined,
  ) {
    super(message);
  }
}

/**
 * The API has carried the request out, and its answer lacks what this client needs. Another attempt
 * would get the same answer; a client of the service's own release can read it.
 */
export class IncompatibleAnswerError extends UnexpectedAnswerError {
  override name = "IncompatibleAnswerError";

  constructor(status: number, requestId: string) {
    super(`An answer with ${status} that this client cannot read.`, status, requestId, undefined);
  }
}

/** Storage refused an upload. */
export class UploadError extends ClaimLedgerError {
  override name = "UploadError";

  constructor(readonly status: number) {
    super(`Storage refused the upload with ${status}.`);
  }
}
