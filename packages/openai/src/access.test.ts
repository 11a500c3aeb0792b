import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { createAgent, isMillraceError, type Model } from 'millrace';
import { lastValueFrom } from 'rxjs';
import { accessOf, serverOf } from './access.js';
import { createRequests } from './client.js';
import { embeddings } from './embeddings/index.js';
import { endpoint } from './endpoint.js';
import type { ResponsesOptions } from './options.js';
import type { Profile } from './profile.js';
import { deepseek, openai, profiles } from './vendors.js';

const before = { ...process.env };

beforeEach(() => {
  for (const name of Object.keys(process.env)) {
    if (/^(OPENAI|AZURE|DEEPSEEK|OLLAMA)_/u.test(name)) Reflect.deleteProperty(process.env, name);
  }
});

afterEach(() => {
  process.env = { ...before };
});

/** The headers with the key of one request. */
const keyOf = async ({ credentials }: ReturnType<typeof accessOf>) =>
  (typeof credentials === 'function' ? await credentials() : credentials).headers;

const failure = (act: () => unknown): string => {
  try {
    act();
  } catch (error) {
    return isMillraceError(error) ? `${error.code}: ${error.message}` : String(error);
  }
  return 'nothing was thrown';
};

describe('a key', () => {
  const failureOf = async (model: Model): Promise<string> => {
    const error: unknown = await createAgent({ model })
      .call('Hi')
      .catch((thrown: unknown) => thrown);
    return isMillraceError(error) ? `${error.code}: ${error.message}` : String(error);
  };

  it('C7: is missed by the first request, with what to do', async () => {
    expect(await failureOf(openai('gpt-5-mini'))).toBe(
      "config: OpenAI needs a key: set OPENAI_API_KEY, or pass the option 'apiKey'.",
    );
    expect(await failureOf(deepseek('deepseek-chat'))).toMatch(/^config: .*set DEEPSEEK_API_KEY/u);
    expect(await failureOf(openai.responses('gpt-5'))).toMatch(/^config: .*set OPENAI_API_KEY/u);
    const mine = endpoint({ name: 'Mine', baseURL: 'http://127.0.0.1:1/v1' });
    expect(await failureOf(mine('m'))).toBe("config: Mine needs a key: pass the option 'apiKey'.");
    await expect(
      lastValueFrom(embeddings(profiles.openai, 'm').embed$(['x'])),
    ).rejects.toMatchObject({ code: 'config', retryable: false });
  });

  it('is not needed by a server of one’s own', async () => {
    const local = accessOf(profiles.openai, { baseURL: 'http://127.0.0.1:8000/v1' });
    expect(await keyOf(local)).toEqual({});
    expect(accessOf(profiles.ollama, {}).secrets).toEqual([]);
    const elsewhere = { baseURL: 'http://127.0.0.1:8000/v1' };
    await expect(keyOf(accessOf(profiles.deepseek, elsewhere))).rejects.toThrow(
      'set DEEPSEEK_API_KEY',
    );
  });

  it('X8: is carried by the header that the vendor reads', async () => {
    const access = accessOf(profiles.azure, {
      apiKey: 'az-key',
      baseURL: 'https://mine.openai.azure.com/openai/v1',
    });
    expect(await keyOf(access)).toEqual({ 'api-key': 'az-key' });
  });
});

describe('a token', () => {
  const baseURL = 'https://mine.openai.azure.com/openai/v1';

  it('X8: of Azure, which a function gives, is a bearer token', async () => {
    const access = accessOf(profiles.azure, { apiKey: () => 'entra', baseURL });
    expect(await keyOf(access)).toEqual({ authorization: 'Bearer entra' });
  });

  it('X8: of others is a key like any', async () => {
    const profile = { name: 'Mine', baseURL, keyHeader: 'X-Key' };
    const access = accessOf(profile, { apiKey: () => 'k1' });
    expect(await keyOf(access)).toEqual({ 'x-key': 'k1' });
  });
});

describe('an address', () => {
  it('C7: names the server that answers there', () => {
    const local = 'http://127.0.0.1:11434/v1';
    expect(serverOf(profiles.openai, profiles.openai.baseURL ?? '')).toBe('OpenAI');
    expect(serverOf(profiles.openai, local)).toBe('The server at 127.0.0.1:11434');
    expect(serverOf(profiles.ollama, local)).toBe('Ollama');
    expect(serverOf(profiles.ollama, 'https://mill.example/v1')).toBe('Ollama at mill.example');
    expect(serverOf(profiles.azure, 'https://mine.openai.azure.com/openai/v1')).toBe(
      'Azure OpenAI',
    );
    expect(serverOf({ name: 'Mine', baseURL: `${local}/` }, local)).toBe('Mine');
  });

  it('comes from the variable of the vendor', () => {
    const address = () => accessOf(profiles.openai, { apiKey: 'k' }).baseURL;
    expect(address()).toBe('https://api.openai.com/v1');
    process.env['OPENAI_BASE_URL'] = 'http://127.0.0.1:9/v1/';
    expect(address()).toBe('http://127.0.0.1:9/v1');
    expect(failure(() => accessOf(profiles.azure, { apiKey: 'k' }))).toMatch(
      /set AZURE_OPENAI_BASE_URL, or pass the option 'baseURL'/u,
    );
  });
});

describe('the environment of OpenAI', () => {
  beforeEach(() => {
    process.env['OPENAI_ORG_ID'] = 'org-1';
    process.env['OPENAI_PROJECT_ID'] = 'proj-1';
    process.env['OPENAI_CUSTOM_HEADERS'] = 'X-Team: core\nX-Auth-Token: t0ken-of-team\nnonsense';
  });

  it('is honoured by OpenAI', async () => {
    const options = { apiKey: 'k', headers: { 'X-Mine': '1' } };
    const access = accessOf(profiles.openai, options);
    expect(access.headers).toMatchObject({
      'x-team': 'core',
      'x-auth-token': 't0ken-of-team',
      'x-mine': '1',
    });
    expect(access.secrets).toContain('t0ken-of-team');
    const sent = async (settings: object) =>
      (await createRequests(profiles.openai, access, '/x', settings)('{}').request()).headers;
    expect(await sent(options)).toMatchObject({
      'openai-organization': 'org-1',
      'openai-project': 'proj-1',
      'x-auth-token': 't0ken-of-team',
    });
    expect(await sent({ organization: 'org-2' })).toMatchObject({
      'openai-organization': 'org-2',
      'openai-project': 'proj-1',
    });
  });

  it('X10: stays private', async () => {
    const access = accessOf(profiles.deepseek, { apiKey: 'k' });
    expect(access.headers).toEqual({ authorization: null, 'x-team': null, 'x-auth-token': null });
    const { headers } = await createRequests(profiles.deepseek, access, '/x', {})('{}').request();
    expect(Object.keys(headers)).not.toEqual(
      expect.arrayContaining([expect.stringMatching(/^openai-|^x-team|^x-auth/u)]),
    );
  });
});

describe('endpoint', () => {
  it.each([
    [() => openai('', { apiKey: 'k' }), /needs a name/u],
    [
      () => openai('m', { apiKey: 'k', maxRetries: 2 } as object),
      /has no option 'maxRetries'\. Did you mean 'retry'\?/u,
    ],
    [
      () => openai.chat('m', { apiKey: 'k', stored: true } as object),
      /has no option 'stored'\. Its options are: apiKey, /u,
    ],
    ...['baseUrl', 'base_url', 'baseurl', 'url'].map((name): [() => unknown, RegExp] => [
      () => openai('m', { [name]: 'http://127.0.0.1:1/v1' }),
      new RegExp(`has no option '${name}'\\. Did you mean 'baseURL'\\?$`, 'u'),
    ]),
    [() => openai('m', { api_key: 'k' } as object), /Did you mean 'apiKey'\?$/u],
    [
      () => openai('m', { reasoningSummary: 'auto' } as object),
      /The model 'm' has no option 'reasoningSummary'\. Only the Responses API has it\. Create the model with openai\.responses\(model, \{ reasoningSummary: … \}\)\.$/u,
    ],
    [
      () => deepseek('m', { reasoningSummary: 'auto' } as object),
      /If DeepSeek supports that API, create the model with \.responses\(model, \{/u,
    ],
    [() => openai('m', { timeout: 5 } as object), /Did you mean 'timeouts'\?$/u],
    [() => openai('m', { defaultHeaders: {} } as object), /Did you mean 'headers'\?$/u],
    [
      () => openai.responses('m', { reasoning: {} } as object),
      /Did you mean 'reasoningEffort'\?$/u,
    ],
    ...[
      'temperature',
      'maxTokens',
      'max_tokens',
      'toolChoice',
      'stop',
      'systemPrompt',
      'tools',
    ].map((name): [() => unknown, RegExp] => [
      () => openai('m', { [name]: 1 }),
      new RegExp(`has no option '${name}'\\. Agents have it: createAgent\\(\\{ model, `, 'u'),
    ]),
    [() => openai('m', { apiKey: 5 } as object), /'apiKey' must be/u],
    [() => openai('m', { apiKey: 'k', reasoningEffort: 'huge' } as object), /'reasoningEffort'/u],
    [() => openai.responses('m', { apiKey: 'k', store: 'yes' } as object), /'store' must be true/u],
    [() => openai('m', null as never), /takes an object of options/u],
    [() => endpoint({ name: '' }), /'name' must be the name of the vendor/u],
    [() => endpoint({} as never), /needs 'name': the name of the vendor/u],
    [
      () => endpoint({ name: 'Mine', maxTokenField: 'max_tokens' } as never),
      /no option 'maxTokenField'\. Did you mean 'maxTokensField'\?/u,
    ],
    [() => endpoint({ name: 'Mine', maxTokensField: 'tokens' } as never), /'maxTokensField' must/u],
    [() => endpoint({ name: 'Mine', media: ['video'] } as never), /'media' must be/u],
    [() => endpoint({ name: 'Mine', keyless: 'yes' } as never), /'keyless' must be/u],
    [() => endpoint({ name: 'Mine', encryptsReasoning: /x/gu }), /'encryptsReasoning' must be/u],
    [
      () => endpoint({ name: 'Mine', unsupported: [{}] } as never),
      /'unsupported' needs 'options'/u,
    ],
    [
      () => endpoint({ name: 'Mine', toolIds: { accepts: /x/u } } as never),
      /'toolIds' needs 'rename'/u,
    ],
  ])('C7: refuses a misuse, and says what to do', (act, why) => {
    expect(failure(act)).toMatch(/^config: /u);
    expect(failure(act)).toMatch(why);
  });

  it('takes options and fields that are undefined for absent', () => {
    const options: ResponsesOptions = {
      organization: undefined,
      project: undefined,
      reasoningEffort: undefined,
      body: undefined,
      reasoningSummary: undefined,
      builtInTools: undefined,
      store: undefined,
    };
    expect(openai.responses('gpt-5', { ...options, apiKey: 'k' }).name).toBe('gpt-5');
    const local = { apiKey: process.env['NO_SUCH_KEY'], baseURL: 'http://127.0.0.1:1/v1' };
    expect(openai('m', local).name).toBe('m');
    const profile: Profile = { name: 'Mine', keyVariable: undefined, media: undefined };
    expect(endpoint(profile)('m', { apiKey: 'k', baseURL: 'http://127.0.0.1:1/v1' }).name).toBe(
      'm',
    );
  });

  it('calls a model what the vendor calls it', () => {
    expect(openai('gpt-5-mini', { apiKey: 'k' }).name).toBe('gpt-5-mini');
    expect(openai.responses('gpt-5', { apiKey: 'k' }).name).toBe('gpt-5');
  });
});
