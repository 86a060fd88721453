export { ClaimLedger, type ClientOptions } from "./client.js";
export type { Mode } from "./credentials.js";
export {
  ApiError,
  ClaimLedgerError,
  ConfigurationError,
  ConnectionError,
  type Details,
  type ErrorCode,
  IncompatibleAnswerError,
  TimeoutError,
  UnexpectedAnswerError,
  UploadError,
} from "./errors.js";
export type * from "./generated/types.gen.js";
export type { Answered, CallOptions } from "./operation.js";
export type { Upload } from "./uploads.js";
