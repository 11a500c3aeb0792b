import { describe, expect, it, jest } from '@jest/globals';
import type { Access } from './access.js';
import { sdkRequests } from './sdk-requests.js';
import type { SdkClient, SdkOptions } from './sdk-target.js';

const access: Access = {
  baseURL: 'https://acme.example/v1',
  headers: { authorization: null, 'x-team': 'a' },
  credentials: { headers: { authorization: 'Bearer sk-1' }, secret: 'sk-1' },
  secrets: ['sk-1'],
  dangerouslyAllowBrowser: false,
};

/** A client that builds requests as an SDK does. */
const load = (options: SdkOptions): Promise<SdkClient> =>
  Promise.resolve({
    buildRequest: ({ path, headers }) =>
      Promise.resolve({
        url: options.baseURL + path,
        req: { headers: new Headers({ ...headers, 'User-Agent': 'Acme/1' }) },
      }),
  });

describe('sdkRequests', () => {
  it('adds the key to what the SDK builds, and loads and asks it once', async () => {
    const loading = jest.fn(load);
    const requests = sdkRequests(access, '/chat', loading);
    const expected = {
      url: 'https://acme.example/v1/chat',
      headers: {
        authorization: 'Bearer sk-1',
        'content-type': 'application/json',
        'user-agent': 'Acme/1',
      },
    };
    const both = [requests('1').request(), requests('2').request()];
    expect(await Promise.all(both)).toEqual([
      { ...expected, body: '1' },
      { ...expected, body: '2' },
    ]);
    // No promise, once it is known.
    expect(requests('3').request()).toEqual({ ...expected, body: '3' });
    expect(loading).toHaveBeenCalledTimes(1);
    expect(loading).toHaveBeenCalledWith(
      expect.objectContaining({ apiKey: 'none', maxRetries: 0, logLevel: 'off' }),
    );
  });

  it('X10: asks for the key of each request, and adds it to its secrets only', async () => {
    let count = 0;
    const credentials = () => {
      count += 1;
      const secret = `sk-${count}`;
      return Promise.resolve({ headers: { authorization: secret }, secret });
    };
    const requests = sdkRequests({ ...access, credentials, secrets: ['sk-0'] }, '/chat', load);
    const [first, second] = [requests('1'), requests('2')];
    expect(count).toBe(0);
    expect(first.secrets).toEqual(['sk-0']);
    expect(await first.request()).toMatchObject({ headers: { authorization: 'sk-1' } });
    expect(await second.request()).toMatchObject({ headers: { authorization: 'sk-2' } });
    expect([first.secrets, second.secrets]).toEqual([
      ['sk-0', 'sk-1'],
      ['sk-0', 'sk-2'],
    ]);
  });

  it('loads the SDK once for a key that is fetched for each request', async () => {
    const credentials = () => Promise.resolve({ headers: {}, secret: 'sk-9' });
    const loading = jest.fn(load).mockResolvedValueOnce(await load({} as SdkOptions));
    const requests = sdkRequests({ ...access, credentials }, '/chat', loading);
    for (const body of ['1', '2', '3']) await requests(body).request();
    expect(loading).toHaveBeenCalledTimes(1);
  });

  it('C7: says how to allow a browser, in which the SDK refuses to run', async () => {
    const refuse = ({ dangerouslyAllowBrowser }: SdkOptions): Promise<SdkClient> =>
      dangerouslyAllowBrowser
        ? load({ baseURL: 'https://acme.example' } as SdkOptions)
        : Promise.reject(new Error("It looks like you're running in a browser-like environment."));
    const error: unknown = await Promise.resolve(
      sdkRequests(access, '/chat', refuse)('1').request(),
    ).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'config', retryable: false });
    expect(error).toHaveProperty('message', expect.stringContaining("'dangerouslyAllowBrowser'"));
    const allowed = sdkRequests({ ...access, dangerouslyAllowBrowser: true }, '/chat', refuse);
    expect(await allowed('1').request()).toMatchObject({ url: 'https://acme.example/chat' });
  });

  it('loads the SDK before the first request, which then needs no promise', async () => {
    const loading = jest.fn(load);
    const requests = sdkRequests(access, '/chat', loading);
    expect(loading).not.toHaveBeenCalled();
    // The module of the target, the client, and its request.
    while (loading.mock.calls.length === 0) await import('./sdk-target.js');
    await new Promise(setImmediate);
    expect(requests('1').request()).toMatchObject({ url: 'https://acme.example/v1/chat' });
    expect(loading).toHaveBeenCalledTimes(1);
  });

  it('reports with `config` that the SDK could not be loaded', async () => {
    const fail = (): Promise<SdkClient> => Promise.reject(new Error("Cannot find package 'acme'"));
    const requests = sdkRequests(access, '/chat', fail);
    await expect(requests('1').request()).rejects.toMatchObject({
      code: 'config',
      retryable: false,
      message: expect.stringMatching(/failed to load.*: Cannot find package 'acme'$/),
    });
  });

  it('loads the SDK again after it could not be loaded', async () => {
    const loading = jest.fn(load).mockRejectedValueOnce(new Error('not found'));
    const requests = sdkRequests(access, '/chat', loading);
    await expect(requests('1').request()).rejects.toThrow('not found');
    expect(await requests('2').request()).toMatchObject({ body: '2' });
  });
});
