import type { Wire } from './scenario.js';

/** What an error says beside its status. What is absent is as the vendor says it for the status. */
export interface VendorErrorDetails {
  readonly message?: string;
  readonly type?: string;
  /** OpenAI only. */
  readonly code?: string;
}

interface Kind {
  readonly type: string;
  readonly code?: string;
}

// https://platform.openai.com/docs/guides/error-codes
const openaiKinds: Readonly<Record<number, Kind>> = {
  401: { type: 'invalid_request_error', code: 'invalid_api_key' },
  402: { type: 'insufficient_quota', code: 'insufficient_quota' },
  404: { type: 'invalid_request_error', code: 'model_not_found' },
  429: { type: 'requests', code: 'rate_limit_exceeded' },
};

// https://platform.claude.com/docs/en/api/errors
const anthropicKinds: Readonly<Record<number, Kind>> = {
  401: { type: 'authentication_error' },
  402: { type: 'billing_error' },
  403: { type: 'permission_error' },
  404: { type: 'not_found_error' },
  413: { type: 'request_too_large' },
  429: { type: 'rate_limit_error' },
  504: { type: 'timeout_error' },
  529: { type: 'overloaded_error' },
};

const kindOf = (wire: Wire, status: number): Kind => {
  const kinds = wire === 'messages' ? anthropicKinds : openaiKinds;
  const serverError = wire === 'messages' ? 'api_error' : 'server_error';
  return kinds[status] ?? { type: status >= 500 ? serverError : 'invalid_request_error' };
};

/** Writes an error body as the vendor of a wire does. */
export const vendorError = (
  wire: Wire,
  status: number,
  details: VendorErrorDetails = {},
): Readonly<Record<string, unknown>> => {
  const kind = kindOf(wire, status);
  const { message = `The request failed with status ${status}.`, type = kind.type } = details;
  const code = details.code ?? kind.code ?? null;
  return wire === 'messages'
    ? { type: 'error', error: { type, message }, request_id: 'req_011CTfault' }
    : { error: { message, type, param: null, code } };
};
