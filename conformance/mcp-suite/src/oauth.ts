import {
  ClientCredentialsProvider,
  CrossAppAccessProvider,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  PrivateKeyJwtProvider,
  requestJwtAuthorizationGrant,
  type StoredOAuthClientInformation,
  type StoredOAuthTokens,
} from '@modelcontextprotocol/client';

/** A provider, and the parameters of the redirect after a user has agreed, once. */
export interface Authorized {
  readonly provider: OAuthClientProvider;
  readonly code: () => URLSearchParams | undefined;
}

type Context = Readonly<Record<string, unknown>>;

/** The provider that a scenario needs. */
export const providerFor = (scenario: string, context: Context, issuer: string): Authorized => {
  const fixed = machineProvider(scenario, context, issuer);
  return fixed === undefined
    ? userProvider(context, issuer)
    : { provider: fixed, code: () => undefined };
};

const textIn = (context: Context, key: string): string => {
  const value = context[key];
  return typeof value === 'string' ? value : '';
};

const machineProvider = (
  scenario: string,
  context: Context,
  expectedIssuer: string,
): OAuthClientProvider | undefined => {
  const clientId = textIn(context, 'client_id');
  switch (scenario) {
    case 'auth/client-credentials-basic':
      return new ClientCredentialsProvider({
        clientId,
        clientSecret: textIn(context, 'client_secret'),
        expectedIssuer,
      });
    case 'auth/client-credentials-jwt':
      return new PrivateKeyJwtProvider({
        clientId,
        privateKey: textIn(context, 'private_key_pem'),
        algorithm: textIn(context, 'signing_algorithm') || 'ES256',
        expectedIssuer,
      });
    case 'auth/enterprise-managed-authorization':
      return new CrossAppAccessProvider({
        clientId,
        clientSecret: textIn(context, 'client_secret'),
        expectedIssuer,
        assertion: async ({ authorizationServerUrl, resourceUrl, fetchFn }) => {
          const { jwtAuthGrant } = await requestJwtAuthorizationGrant({
            tokenEndpoint: textIn(context, 'idp_token_endpoint'),
            audience: authorizationServerUrl,
            resource: resourceUrl,
            idToken: textIn(context, 'idp_id_token'),
            clientId: textIn(context, 'idp_client_id'),
            fetchFn,
          });
          return jwtAuthGrant;
        },
      });
    default:
      return undefined;
  }
};

/** A provider whose user agrees immediately, without a browser. */
const userProvider = (context: Context, issuer: string): Authorized => {
  const redirectUrl = 'http://localhost:9/callback';
  let verifier = '';
  let discovered: OAuthDiscoveryState | undefined;
  let tokens: StoredOAuthTokens | undefined;
  let callback: URLSearchParams | undefined;
  let client: StoredOAuthClientInformation | undefined =
    context['client_id'] === undefined
      ? undefined
      : {
          client_id: textIn(context, 'client_id'),
          client_secret: textIn(context, 'client_secret'),
          issuer,
        };
  const provider: OAuthClientProvider = {
    redirectUrl,
    clientMetadataUrl: 'https://conformance-test.local/client-metadata.json',
    clientMetadata: {
      client_name: 'millrace',
      redirect_uris: [redirectUrl],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
    },
    clientInformation: () => client,
    saveClientInformation: (information) => {
      client = information;
    },
    tokens: () => tokens,
    saveTokens: (given) => {
      tokens = given;
      // The next authorization may be that of another server.
      discovered = undefined;
    },
    redirectToAuthorization: async (url) => {
      const { headers } = await fetch(url, { redirect: 'manual' });
      callback = new URL(headers.get('location') ?? redirectUrl).searchParams;
    },
    saveCodeVerifier: (given) => {
      verifier = given;
    },
    codeVerifier: () => verifier,
    saveDiscoveryState: (given) => {
      discovered = given;
    },
    discoveryState: () => discovered,
  };
  return {
    provider,
    code: () => {
      const given = callback;
      callback = undefined;
      return given?.has('code') === true ? given : undefined;
    },
  };
};
