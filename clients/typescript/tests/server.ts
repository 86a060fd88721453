/** A server that answers as a test says, one request after another, and keeps what it was sent. */

import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after } from "node:test";
import { ClaimLedger, type ClientOptions } from "../src/index.js";

export const KEY = "pk_test_ptn_example.key_example.SECRETsecret";

export interface Sent {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
  at: number;
}

/** Writes the answer to a request. */
export type Answer = (response: ServerResponse, sent: Sent) => void;

export interface Scripted {
  url: string;
  sent: Sent[];
  end: () => void;
  client: (options?: Partial<ClientOptions>) => ClaimLedger;
}

/** Serve these answers in order, the last one for ever; ends after the test file. */
export async function serve(...answers: Answer[]): Promise<Scripted> {
  const sent: Sent[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { method = "", url: path = "", headers } = request;
    const body = Buffer.concat(chunks).toString();
    sent.push({ method, path, headers, body, at: performance.now() });
    answers[Math.min(sent.length, answers.length) - 1]?.(response, sent.at(-1) as Sent);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const end = () => {
    server.closeAllConnections();
    server.close();
  };
  after(end);
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = (options = {}) => new ClaimLedger(KEY, { baseUrl: `${url}/v1`, ...options });
  return { url, sent, client, end };
}

export function json(status: number, body: unknown, headers: Record<string, string> = {}): Answer {
  return (response) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(typeof body === "string" ? body : JSON.stringify(body));
  };
}

export function refusal(status: number, code: string, headers = {}, more = {}): Answer {
  return json(status, { error: "Refused", code, message: "No.", ...more }, headers);
}

/** The connection ends without an answer. */
export const cut: Answer = (response) => response.destroy();

/** No answer ever comes. */
export const silence: Answer = () => {};

export const CLAIM = {
  claim_id: "clm_1",
  message_id: null,
  document_ids: [],
  already_existed: false,
};
export const LINK = { connect_url: "https://example.com/connect/token", expires_at: null };
