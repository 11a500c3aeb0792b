/** Error types and codes for a conversation that exceeds the context window. */
export const contextCodes: ReadonlySet<string> = new Set([
  'context_length_exceeded',
  'exceed_context_size_error',
  'model_context_window_exceeded',
  'string_above_max_length',
  // Z.AI
  '1261',
]);

/** Error types and codes for a request that a content filter refused. */
export const refusalCodes: ReadonlySet<string> = new Set([
  'content_filter',
  'content_policy_violation',
  'responsibleaipolicyviolation',
  'data_inspection_failed',
  'datainspectionfailed',
]);

/** Error types and codes for exhausted credit or quota. Waiting for a moment does not help. */
export const quotaCodes: ReadonlySet<string> = new Set([
  'insufficient_quota',
  'insufficient_balance',
  'insufficient_credits',
  'exceeded_current_quota_error',
  'billing_error',
  'billing_not_active',
  'billing_hard_limit_reached',
  'arrearage',
]);

/** The HTTP status that an error type or code implies, for errors without a status. */
export const statusByCode: ReadonlyMap<string, number> = new Map([
  ['invalid_request_error', 400],
  ['invalid_argument', 400],
  ['invalid_prompt', 400],
  ['bad_request', 400],
  ['badrequesterror', 400],
  ['authentication_error', 401],
  ['invalid_api_key', 401],
  ['unauthenticated', 401],
  ['permission_error', 403],
  ['permission_denied', 403],
  ['not_found', 404],
  ['not_found_error', 404],
  ['model_not_found', 404],
  ['request_timeout', 408],
  ['conflict_error', 409],
  ['request_too_large', 413],
  ['too_many_requests', 429],
  ['rate_limit_error', 429],
  ['rate_limit_exceeded', 429],
  ['rate_limited', 429],
  ['resource_exhausted', 429],
  ['throttling', 429],
  ['throttlingexception', 429],
  ['modelnotreadyexception', 429],
  ['servicequotaexceededexception', 429],
  ['validationexception', 400],
  ['modeltimeoutexception', 408],
  ['modelstreamerrorexception', 500],
  ['internalserverexception', 500],
  ['serviceunavailableexception', 503],
  ['capacity_exceeded', 503],
  ['api_error', 500],
  ['internal', 500],
  ['internal_error', 500],
  ['internal_server_error', 500],
  ['internalservererror', 500],
  ['server_error', 500],
  ['service_unavailable', 503],
  ['service_unavailable_error', 503],
  ['unavailable', 503],
  ['deadline_exceeded', 504],
  ['timeout_error', 504],
  ['overloaded', 529],
  ['overloaded_error', 529],
  ['engine_overloaded_error', 529],
]);
