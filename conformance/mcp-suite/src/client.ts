// The program that the scenarios for clients start: an agent that lists the tools of the server at a URL, and calls each.
import { createAgent, isMillraceError, type Tool } from 'millrace';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { isRecord } from 'millrace/values';
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

const lookedUp = () =>
  scenario.startsWith('auth/')
    ? lookUp().catch(() => ({ issuer: url, origins: [] }))
    : Promise.resolve({ issuer: url, origins: [] });

const context = isRecord(given) ? given : {};

const serverWith = (authProvider: OAuthClientProvider, origins: readonly string[]): McpServer => ({
  name: 'suite',
  prefix: '',
  http: { url, authProvider, origins },
  reconnect: { attempts: 1 },
  // eslint-disable-next-line rxjs-x/finnish -- The name of the option. An empty answer: the SDK fills in the defaults of the form.
  onElicit: () => of({ action: 'accept', content: {} }),
});

/** Arguments of the types that a tool requires. */
const inputFor = ({ inputSchema }: Tool): Readonly<Record<string, unknown>> => {
  const { properties, required } = inputSchema;
  const names: readonly unknown[] = Array.isArray(required)
    ? required
    : Object.keys(properties ?? {});
  return Object.fromEntries(
    names.flatMap((name) => {
      const property: unknown = isRecord(properties) ? properties[String(name)] : undefined;
      return isRecord(property) ? [[String(name), samples[String(property['type'])]]] : [];
    }),
  );
};

const samples: Readonly<Record<string, unknown>> = {
  string: 'some text',
  number: 5,
  integer: 5,
  boolean: true,
  array: [],
  object: {},
};

/** The calls that a scenario wants, or one of each tool. */
const callsOf = (
  tools: readonly Tool[],
): readonly (readonly [string, Readonly<Record<string, unknown>>])[] => {
  const wanted: unknown = context['toolCalls'];
  if (Array.isArray(wanted)) {
    return wanted
      .filter(isRecord)
      .map(({ name, arguments: input }) => [String(name), isRecord(input) ? input : {}]);
  }
  const echo = tools.find(({ name }) => name === 'json_schema_echo');
  const shown = tools.find(({ name }) => name === 'json_schema_2020_12_tool');
  if (echo !== undefined && shown !== undefined)
    return [[echo.name, { schema: shown.inputSchema }]];
  return tools.map((tool) => [tool.name, inputFor(tool)]);
};

/** Makes the calls one after another, and fails if one does. */
const callAll = async (server: McpServer, tools: readonly Tool[]): Promise<void> => {
  const servers = mcp(server);
  const connected = servers.servers$.subscribe();
  const model = scriptedModel(...callsOf(tools).map((call) => [toolCall(...call)]), [
    text('Done.'),
  ]);
  const { toolCalls } = await createAgent({ model, use: [servers] }).call('Call each tool.');
  connected.unsubscribe();
  const failed = toolCalls.find(({ isError }) => isError);
  if (failed !== undefined) throw new Error(failed.output);
};

const isRefused = (error: unknown): boolean => isMillraceError(error) && error.code === 'refused';

/**
 * A user agrees to each authorization that the server wants, up to three times. Each time, the server may name another
 * authorization server, which the user looks up, and trusts once more when it changes in the middle.
 */
const run = async (
  { provider, code }: Authorized,
  attempts: number,
  changes: number,
): Promise<void> => {
  const server = serverWith(provider, (await lookedUp()).origins);
  try {
    await callAll(server, await firstValueFrom(mcpTools(server)));
  } catch (error) {
    const callback = code();
    if (isMillraceError(error)) console.error(error.message);
    if (callback === undefined) {
      if (changes === 0 || !isRefused(error)) throw error;
      await run({ provider, code }, attempts, changes - 1);
      return;
    }
    if (attempts === 1) throw error;
    await auth(provider, {
      serverUrl: url,
      authorizationCode: callback.get('code') ?? '',
      ...(callback.has('iss') && { iss: callback.get('iss') ?? '' }),
    });
    await run({ provider, code }, attempts - 1, changes);
  }
};

await run(providerFor(scenario, context, (await lookedUp()).issuer), 3, 1);
process.exit(0);
