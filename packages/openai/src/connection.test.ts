import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { isMillraceError } from '@millrace/core';
import { connect } from './connection.js';
import { openai, profiles } from './vendors.js';
import { endpoint } from './endpoint.js';

const before = { ...process.env };

beforeEach(() => {
  for (const name of Object.keys(process.env)) {
    if (/^(OPENAI|AZURE|DEEPSEEK|OLLAMA)_/u.test(name)) Reflect.deleteProperty(process.env, name);
  }
});

afterEach(() => {
  process.env = { ...before };
});

const failure = (act: () => unknown): string => {
  try {
    act();
  } catch (error) {
    return isMillraceError(error) ? `${error.code}: ${error.message}` : String(error);
  }
  return 'nothing was thrown';
};

describe('a key', () => {
  it('C7: is missed at construction, with what to do', () => {
    expect(failure(() => openai('gpt-5-mini'))).toBe(
      "config: OpenAI needs a key: set OPENAI_API_KEY, or pass the option 'apiKey'.",
    );
    expect(failure(() => openai('gpt-5-mini', { apiKey: ' ' }))).toMatch(/needs a key/u);
    const mine = endpoint({ name: 'Mine', baseUrl: 'http://127.0.0.1:1/v1' });
    expect(failure(() => mine('m'))).toBe("config: Mine needs a key: pass the option 'apiKey'.");
  });

  it('comes from the option, else from the variable', async () => {
    process.env['OPENAI_API_KEY'] = ' sk-variable\n';
    const keyOf = async (options = {}) => {
      const connection = connect(profiles.openai, options);
      return [connection.secrets, (await connection.credentials()).headers];
    };
    expect(await keyOf()).toEqual([['sk-variable'], { Authorization: 'Bearer sk-variable' }]);
    expect(await keyOf({ apiKey: 'sk-option' })).toEqual([
      ['sk-option'],
      { Authorization: 'Bearer sk-option' },
    ]);
  });

  it('is asked of a function for each request', async () => {
    const keys = ['sk-first', 'sk-second'];
    const { credentials } = connect(profiles.openai, { apiKey: () => keys.shift() ?? '' });
    expect(await credentials()).toMatchObject({ secret: 'sk-first' });
    expect(await credentials()).toMatchObject({ secret: 'sk-second' });
    await expect(credentials()).rejects.toMatchObject({ code: 'auth' });
  });

  it('X10: is not told when the function for it fails', async () => {
    const apiKey = () => Promise.reject(new Error('no luck with sk-secret'));
    const { credentials } = connect(profiles.openai, { apiKey });
    const error: unknown = await credentials().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'auth' });
    expect(error).not.toHaveProperty('cause');
    expect(String(error)).not.toContain('sk-secret');
  });

  it('is not needed by a server of one’s own, nor where a header stands for it', async () => {
    const local = connect(profiles.openai, { baseUrl: 'http://127.0.0.1:8000/v1' });
    expect((await local.credentials()).headers).toEqual({});
    expect(connect(profiles.ollama, {}).secrets).toEqual([]);
    const headers = { 'X-Api-Token': 'Basic secret' };
    expect(connect(profiles.openai, { headers }).secrets).toEqual(['Basic secret', 'secret']);
  });

  it('X8: is carried by the header that the vendor reads', async () => {
    const { credentials } = connect(profiles.azure, {
      apiKey: 'az-key',
      baseUrl: 'https://mine.openai.azure.com/openai/v1',
    });
    expect((await credentials()).headers).toEqual({ 'api-key': 'az-key' });
  });
});

describe('an address', () => {
  it('comes from the option, else from the variable, else from the profile', () => {
    const addressOf = (options = {}) =>
      connect(profiles.openai, { apiKey: 'k', ...options }).baseUrl;
    expect(addressOf()).toBe('https://api.openai.com/v1');
    process.env['OPENAI_BASE_URL'] = 'http://127.0.0.1:9/v1/';
    expect(addressOf()).toBe('http://127.0.0.1:9/v1');
    expect(addressOf({ baseUrl: 'https://proxy.example/v1' })).toBe('https://proxy.example/v1');
  });

  it.each([
    [{}, /set AZURE_OPENAI_BASE_URL, or pass the option 'baseUrl'/u],
    [{ baseUrl: 'mine.example/v1' }, /is no http address/u],
    [{ baseUrl: 'file:///v1' }, /is no http address/u],
    [{ baseUrl: 'https://me:secret@mine.example/v1' }, /pass the option 'headers'/u],
  ])('C7: is refused at construction where it is none: %j', (options, why) => {
    const message = failure(() => connect(profiles.azure, { apiKey: 'k', ...options }));
    expect(message).toMatch(why);
    expect(message).not.toContain('secret');
  });
});

describe('the environment of OpenAI', () => {
  beforeEach(() => {
    process.env['OPENAI_ORG_ID'] = 'org-1';
    process.env['OPENAI_PROJECT_ID'] = 'proj-1';
    process.env['OPENAI_CUSTOM_HEADERS'] = 'X-Team: core\nX-Auth-Token: t0ken-of-team\nnonsense';
  });

  it('is honoured by OpenAI', () => {
    const connection = connect(profiles.openai, { apiKey: 'k', headers: { 'X-Mine': '1' } });
    expect(connection).toMatchObject({
      organization: 'org-1',
      project: 'proj-1',
      headers: { 'X-Team': 'core', 'X-Auth-Token': 't0ken-of-team', 'X-Mine': '1' },
    });
    expect(connection.secrets).toContain('t0ken-of-team');
  });

  it('X10: is nobody else’s business', () => {
    const connection = connect(profiles.deepseek, { apiKey: 'k' });
    expect(connection).toMatchObject({ organization: null, project: null });
    expect(connection.headers).toEqual({
      Authorization: null,
      'X-Team': null,
      'X-Auth-Token': null,
    });
  });
});

describe('endpoint', () => {
  it.each([
    [() => openai('', { apiKey: 'k' }), /needs a name/u],
    [
      () => openai('m', { apiKey: 'k', maxRetries: 2 } as object),
      /has no option 'maxRetries'\. Its options are: apiKey, /u,
    ],
    [() => openai.chat('m', { apiKey: 'k', store: true } as object), /has no option 'store'/u],
    [() => endpoint({ name: '' }), /needs the name of the vendor/u],
  ])('C7: refuses a misuse, and says what to do', (act, why) => {
    expect(failure(act)).toMatch(/^config: /u);
    expect(failure(act)).toMatch(why);
  });

  it('calls a model what the vendor calls it', () => {
    expect(openai('gpt-5-mini', { apiKey: 'k' }).name).toBe('gpt-5-mini');
    expect(openai.responses('gpt-5', { apiKey: 'k' }).name).toBe('gpt-5');
  });
});
