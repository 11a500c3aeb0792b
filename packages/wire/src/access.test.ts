import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type Access, type AccessSource, resolveAccess } from './access.js';
import type { VendorSettings } from './settings.js';

const source: AccessSource = {
  vendor: 'Acme',
  baseURL: 'https://acme.example/v1',
  baseURLVariable: 'ACME_BASE_URL',
  exampleUrl: 'https://example.com/v1',
  keyVariables: ['ACME_API_KEY', 'ACME_TOKEN'],
  headersVariable: 'ACME_HEADERS',
};

const access = (settings: VendorSettings = {}, differences: Partial<AccessSource> = {}) =>
  resolveAccess({ ...source, ...differences }, settings);

const environment = process.env;
beforeEach(() => {
  process.env = {};
});
afterEach(() => {
  process.env = environment;
});

/** The key of one request. */
const keyOf = async ({ credentials }: Pick<Access, 'credentials'>) =>
  typeof credentials === 'function' ? credentials() : credentials;

describe('a key', () => {
  it('comes from the option, else from the first variable that holds one', async () => {
    const headersOf = async (settings?: VendorSettings) => {
      const { secrets, credentials } = access(settings);
      const { headers, secret } = await keyOf({ credentials });
      expect(secrets).toEqual([secret]);
      return headers;
    };
    process.env['ACME_TOKEN'] = 'sk-token';
    expect(await headersOf()).toEqual({ authorization: 'Bearer sk-token' });
    process.env['ACME_API_KEY'] = ' sk-variable\n';
    expect(await headersOf()).toEqual({ authorization: 'Bearer sk-variable' });
    expect(await headersOf({ apiKey: 'sk-option ' })).toEqual({
      authorization: 'Bearer sk-option',
    });
  });

  it.each<[string, VendorSettings, Partial<AccessSource>, string]>([
    ['no key', {}, {}, "Acme needs a key: set ACME_API_KEY, or pass the option 'apiKey'."],
    ['an empty key', { apiKey: ' ' }, {}, 'Acme needs a key'],
    ['no variable', {}, { keyVariables: [] }, "Acme needs a key: pass the option 'apiKey'."],
    ['its own address', {}, { keyless: 'elsewhere' }, 'Acme needs a key'],
    ['a header of no use', { headers: { 'x-team': 'mill' } }, {}, 'Acme needs a key'],
  ])('C7: is missed by a request if there is %s', async (_, settings, differences, message) => {
    await expect(keyOf(access(settings, differences))).rejects.toMatchObject({
      code: 'config',
      retryable: false,
      message: expect.stringContaining(message),
    });
  });

  it('is looked for again by each request until a variable holds one', async () => {
    const late = access();
    await expect(keyOf(late)).rejects.toThrow('Acme needs a key');
    process.env['ACME_TOKEN'] = 'sk-“quoted”';
    await expect(keyOf(late)).rejects.toThrow('characters that are not allowed');
    process.env['ACME_TOKEN'] = ' sk-late ';
    expect(await keyOf(late)).toEqual({
      headers: { authorization: 'Bearer sk-late' },
      secret: 'sk-late',
    });
    await expect(keyOf(access({ apiKey: '' }))).rejects.toThrow('Acme needs a key');
  });

  it.each<[boolean, string, VendorSettings]>([
    [false, 'a key', { apiKey: 'sk-mine' }],
    [false, 'a function for it', { apiKey: () => 'sk-mine' }],
    [false, 'a secret header', { headers: { cookie: 'session=1' } }],
    [false, 'a secret header of the environment', {}],
    [true, 'neither', {}],
    [true, 'a key, if that is allowed', { apiKey: 'sk-mine', dangerouslyAllowBrowser: true }],
    [false, 'neither, if that is forbidden', { dangerouslyAllowBrowser: false }],
  ])('X10: may be %s in a browser with %s', (isAllowed, what, settings) => {
    if (what.endsWith('environment')) process.env['ACME_HEADERS'] = 'X-Auth-Token: t0ken';
    expect(access(settings, { keyless: true }).dangerouslyAllowBrowser).toBe(isAllowed);
  });

  it.each([undefined, {}])('is not looked for in %j, as bundlers define it', async (shim) => {
    const original = globalThis.process;
    try {
      Reflect.set(globalThis, 'process', shim);
      await expect(keyOf(access())).rejects.toThrow('Acme needs a key');
    } finally {
      Reflect.set(globalThis, 'process', original);
    }
  });

  it.each<[string, VendorSettings, Partial<AccessSource>]>([
    ['by a vendor that wants none', {}, { keyless: true }],
    ['elsewhere', { baseURL: 'http://127.0.0.1:8000' }, { keyless: 'elsewhere' }],
    ['where a header stands for it', { headers: { Cookie: 'session' } }, {}],
  ])('is not needed %s', async (_, settings, differences) => {
    const { headers, credentials } = access(settings, differences);
    expect(await keyOf({ credentials })).toEqual({ headers: {}, secret: '' });
    // The SDK may not send its placeholder.
    expect(headers).toMatchObject({ authorization: null });
  });

  it('is asked of a function for each request', async () => {
    const keys = ['sk-first', 'sk-second'];
    const { credentials } = access({ apiKey: () => keys.shift() ?? '' });
    expect(await keyOf({ credentials })).toMatchObject({ secret: 'sk-first' });
    expect(await keyOf({ credentials })).toMatchObject({ secret: 'sk-second' });
    await expect(keyOf({ credentials })).rejects.toMatchObject({ code: 'auth', retryable: false });
  });

  it.each<[string, () => never]>([
    ['rejects', () => Promise.reject(new Error('no luck with sk-secret')) as never],
    [
      'throws',
      () => {
        throw new Error('no luck with sk-secret');
      },
    ],
  ])('X10: is not in the error when the function for it %s', async (_, apiKey) => {
    const error: unknown = await keyOf(access({ apiKey })).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'auth' });
    expect(error).not.toHaveProperty('cause');
    expect(String(error)).not.toContain('sk-secret');
  });

  it.each(['sk-\u201csecret\u201d', 'sk-\nsecret', 'sk-\u0000secret', '\u0441k-secret'])(
    'C7, X10: is refused if no header can hold it: %j',
    async (apiKey) => {
      const refused = (code: string) =>
        expect.objectContaining({ code, message: expect.stringContaining("'apiKey'") });
      for (const create of [() => access({ apiKey })]) {
        expect(create).toThrow(refused('config'));
        expect(create).not.toThrow('secret');
      }
      const { credentials } = access({ apiKey: () => apiKey });
      const error: unknown = await keyOf({ credentials }).catch((thrown: unknown) => thrown);
      expect(error).toEqual(refused('auth'));
      expect(String(error)).not.toContain('secret');
    },
  );

  it('X8: is carried by the header that the vendor reads, unless that is set', async () => {
    const keyHeader = 'Api-Key';
    const { credentials } = access({ apiKey: 'sk-mine' }, { keyHeader });
    expect((await keyOf({ credentials })).headers).toEqual({ 'api-key': 'sk-mine' });
    const set = access({ apiKey: 'sk-mine', headers: { 'API-KEY': 'sk-other' } }, { keyHeader });
    expect(await keyOf(set)).toEqual({ headers: {}, secret: '' });
    expect(set.headers).toMatchObject({ 'api-key': 'sk-other' });
    expect(set.secrets).toEqual(expect.arrayContaining(['sk-mine', 'sk-other']));
  });
});

describe('headers', () => {
  beforeEach(() => {
    process.env['ACME_HEADERS'] = 'X-Team: core\nX-Auth-Token: t0ken-of-team\nnonsense';
  });

  it('take precedence over those of the environment, in any spelling', () => {
    const { headers } = access({ apiKey: 'k', headers: { 'x-TEAM': 'mill' } });
    expect(headers).toEqual({
      authorization: null,
      'x-team': 'mill',
      'x-auth-token': 't0ken-of-team',
    });
  });

  it('X10: hold secrets, with a scheme and without', () => {
    const headers = { 'Proxy-Authorization': 'Basic hunter22', 'x-team': 'mill' };
    const { secrets } = access({ apiKey: () => 'k', headers });
    expect(secrets).toEqual([
      ...['t0ken-of-team', 't0ken-of-team'],
      ...['Basic hunter22', 'hunter22'],
    ]);
  });

  it('X10: are secret by the end of their names', () => {
    const secretsOf = (name: string) =>
      access({ apiKey: () => 'k', headers: { [name]: 'sk-1' } }, { sendsHeaders: false }).secrets;
    for (const name of [
      ...['Authorization', 'Proxy-Authorization', 'api-key', 'X-API-Key', 'apikey', 'x-apikey'],
      ...['Cookie', 'x-auth', 'X-Auth-Token', 'CF-Access-Client-Secret', 'x_password'],
    ]) {
      expect(secretsOf(name)).toContain('sk-1');
    }
    for (const name of ['X-Author', 'X-Auth-Type', 'x-keyboard', 'x-tokens-left', 'x-monkey']) {
      expect(secretsOf(name)).toEqual([]);
    }
  });

  it('X10: hold cookies, which are secrets one by one', () => {
    const headers = { cookie: 'theme=dark; session=hunter22' };
    expect(access({ headers }).secrets).toContain('hunter22');
  });

  it.each([{ 'x-team': 'hunter22\nmore' }, { 'x team': 'hunter22' }])(
    'C7, X10: are refused if they are not valid: %j',
    (headers) => {
      const create = () => access({ apiKey: 'k', headers });
      expect(create).toThrow(expect.objectContaining({ code: 'config' }));
      expect(create).not.toThrow('hunter22');
    },
  );

  it('X10: of the environment are removed if they are meant for another vendor', () => {
    const { headers, secrets } = access({ apiKey: 'k' }, { sendsHeaders: false });
    expect(headers).toEqual({ authorization: null, 'x-team': null, 'x-auth-token': null });
    expect(secrets).toEqual(['k']);
  });
});

describe('an address', () => {
  it('comes from the option, else from the variable, else from the vendor', () => {
    const addressOf = (settings = {}) => access({ apiKey: 'k', ...settings }).baseURL;
    expect(addressOf()).toBe('https://acme.example/v1');
    process.env['ACME_BASE_URL'] = 'http://127.0.0.1:9/v1/';
    expect(addressOf()).toBe('http://127.0.0.1:9/v1');
    expect(addressOf({ baseURL: 'https://proxy.example/v1' })).toBe('https://proxy.example/v1');
  });

  it.each<[VendorSettings, RegExp]>([
    [{}, /set ACME_BASE_URL, or pass the option 'baseURL'/u],
    [{ baseURL: 'mine.example/v1' }, /is not an HTTP URL/u],
    [{ baseURL: 'file:///v1' }, /is not an HTTP URL/u],
    [{ baseURL: 'localhost:11434/v1' }, /'localhost:11434\/v1', .*use 'http:\/\/localhost:11434/u],
    [{ baseURL: 'mine.example:80/v1' }, /use 'http:\/\/mine\.example:80\/v1'/u],
    [{ baseURL: 'me:hunter22@mine.example/v1' }, /is not an HTTP URL: set/u],
    [{ baseURL: 'sk-hunter22' }, /is not an HTTP URL: set/u],
    [{ baseURL: 'https://mine.example/v1?key=hunter22' }, /query or fragment: remove it/u],
    [{ baseURL: 'https://mine.example/v1#hunter22' }, /query or fragment: remove it/u],
    [{ baseURL: 'https://me:hunter22@mine.example/v1' }, /pass the option 'headers'/u],
  ])('C7, X10: is refused at construction if it is not valid: %j', (settings, why) => {
    const create = () => access({ apiKey: 'k', ...settings }, { baseURL: undefined });
    expect(create).toThrow(why);
    expect(create).not.toThrow('hunter22');
  });
});
