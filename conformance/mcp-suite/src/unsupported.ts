export type Side = 'server' | 'client';

const issuer =
  'The metadata of the suite name another issuer than its URL, which the SDK refuses (RFC 8414, 3.3).';

/** The scenarios that are expected to fail, with the reason. One that passes has to be removed here. */
export const unsupported: Readonly<Record<Side, Readonly<Record<string, string>>>> = {
  server: {
    'server-sse-polling': 'serveMcp cannot resume a stream; the suite only warns about that.',
  },
  client: { 'auth/metadata-var2': issuer, 'auth/metadata-var3': issuer },
};
