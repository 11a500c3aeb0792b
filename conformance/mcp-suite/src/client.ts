// The program that the scenarios for clients start: an agent that lists the tools of the server at a URL, and calls each.
import { createAgent, isMillraceError, type Tool } from '@millrace/core';
import { scriptedModel, text, toolCall } from '@millrace/core/testing';
import { isRecord } from '@millrace/core/values';
import { mcp, type McpServer, mcpTools } from '@millrace/mcp';
import {
  auth,
  discoverOAuthServerInfo,
  extractWWWAuthenticateParams,
  type OAuthClientProvider,
} from '@modelcontextprotocol/client';
import { firstValueFrom, of } from 'rxjs';
import { type Authorized, providerFor } from './oauth.js';

const [, , url = ''] = process.argv;
const scenario = process.env['MCP_CONFORMANCE_SCENARIO'] ?? '';
const given: unknown = JSON.parse(process.env['MCP_CONFORMANCE_CONTEXT'] ?? '{}');

/** The authorization server, which a user looks up before it is trusted: the suite does not name it. */
const lookUp = async (): Promise<{
  readonly issuer: string;
  readonly origins: readonly string[];
}> => {
  const challenge = extractWWWAuthenticateParams(await fetch(url, { method: 'POST' }));
  const { resourceMetadataUrl } = challenge;
  const options = resourceMetadataUrl === undefined ? {} : { resourceMetadataUrl };
  const found = await discoverOAuthServerInfo(url, options);
  const metadata = found.authorizationServerMetadata;
  const addresses = [
    found.authorizationServerUrl,
    metadata?.authorization_endpoint,
    metadata?.token_endpoint,
    metadata?.registration_endpoint,
  ];
  return {
    issuer: metadata?.issuer ?? found.authorizationServerUrl,
    origins: addresses.flatMap((it) => (it === undefined ? [] : [new URL(it).origin])),
  };
};

const { issuer, origins } = scenario.startsWith('auth/')
  ? await lookUp().catch(() => ({ issuer: url, origins: [] }))
  : { issuer: url, origins: [] };
const authorized = providerFor(scenario, isRecord(given) ? given : {}, issuer);

const serverWith = (authProvider: OAuthClientProvider): McpServer => ({
  name: 'suite',
  prefix: '',
  http: { url, authProvider, origins },
  reconnect: { attempts: 1 },
  // eslint-disable-next-line rxjs-x/finnish -- The name of the option. An empty answer: the SDK fills in the defaults of the form.
  onElicit: () => of({ action: 'accept', content: {} }),
});

const inputs: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  add_numbers: { a: 5, b: 3 },
};

/** Calls each tool once, and fails if a call does. */
const callEach = async (server: McpServer, tools: readonly Tool[]): Promise<void> => {
  const servers = mcp(server);
  const connected = servers.servers$.subscribe();
  const model = scriptedModel(...tools.map(({ name }) => [toolCall(name, inputs[name] ?? {})]), [
    text('Done.'),
  ]);
  const { toolCalls } = await createAgent({ model, use: [servers] }).call('Call each tool.');
  connected.unsubscribe();
  const failed = toolCalls.find(({ isError }) => isError);
  if (failed !== undefined) throw new Error(failed.output);
};

/** A user agrees to each authorization that the server wants, up to three times. */
const run = async ({ provider, code }: Authorized, attempts: number): Promise<void> => {
  const server = serverWith(provider);
  try {
    await callEach(server, await firstValueFrom(mcpTools(server)));
  } catch (error) {
    const callback = code();
    if (callback === undefined || attempts === 1) throw error;
    if (isMillraceError(error)) console.error(error.message);
    await auth(provider, {
      serverUrl: url,
      authorizationCode: callback.get('code') ?? '',
      ...(callback.has('iss') && { iss: callback.get('iss') ?? '' }),
    });
    await run({ provider, code }, attempts - 1);
  }
};

await run(authorized, 3);
process.exit(0);
