import { addressOf, type Mode, modeOf, refuseBrowsers } from "./credentials.js";
import { Operations } from "./generated/operations.gen.js";
import type { ClaimListItem, DocumentRef, EventList } from "./generated/types.gen.js";
import type { ListClaimsData, ListEventsData } from "./generated/types.gen.js";
import type { Answered, CallOptions, Input, Operation } from "./operation.js";
import { Transport } from "./transport.js";
import { type Upload, upload } from "./uploads.js";

export interface ClientOptions {
  /** The address of the API, which ends in `/v1`. */
  baseUrl: string | undefined;
  /** For each attempt of a call; default: 30 seconds. An upload has five minutes. */
  timeoutMs?: number;
  /** How many attempts may follow the first; default: 6. */
  maxRetries?: number;
}

/** The API with a key of yours. One client serves any number of calls at once. */
export class ClaimLedger extends Operations {
  readonly mode: Mode;
  readonly baseUrl: string;
  readonly #transport: Transport;
  readonly #maxRetries: number;

  /** Throw ConfigurationError where the key or the address is not set, or cannot be used. */
  constructor(key: string | undefined, { baseUrl, timeoutMs = 30_000, maxRetries = 6 }: ClientOptions) {
    super();
    this.mode = modeOf(key);
    refuseBrowsers(this.mode);
    this.baseUrl = addressOf(baseUrl);
    this.#maxRetries = maxRetries;
    this.#transport = new Transport(key ?? "", this.baseUrl, { timeoutMs, maxRetries });
  }

  protected override call<Answer>(
    operation: Operation,
    input: Input,
    options: CallOptions,
  ): Promise<Answer> {
    return this.#transport.call(operation, input, options) as Promise<Answer>;
  }

  /** Yield every claim of an entity, newest first, page by page as they are asked for. */
  async *iterateClaims(
    query: Omit<ListClaimsData["query"], "page_token">,
    options: CallOptions = {},
  ): AsyncGenerator<ClaimListItem, void> {
    let token: string | null | undefined;
    do {
      const page = await this.listClaims({ ...query, ...(token && { page_token: token }) }, options);
      yield* page.claims;
      token = page.next_page_token;
    } while (token);
  }

  /**
   * Yield pages of events, the oldest first, until there are no later ones yet. Keep `next_cursor` of
   * a page once its events are handled: it is the `after` to go on with.
   */
  async *eventPages(
    query: NonNullable<ListEventsData["query"]> = {},
    options: CallOptions = {},
  ): AsyncGenerator<Answered<EventList>, void> {
    let page = await this.listEvents(query, options);
    while (page.events.length) {
      yield page;
      page = await this.listEvents({ ...query, after: page.next_cursor }, options);
    }
  }

  /** Upload a file and return its reference for the `document_refs` of `createClaim`. */
  uploadDocument(document: Upload, options: CallOptions = {}): Promise<DocumentRef> {
    const mint = this.mintUploadUrl.bind(this);
    return upload(mint, document, options, options.maxRetries ?? this.#maxRetries);
  }
}
