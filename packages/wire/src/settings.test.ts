import { describe, expect, it } from '@jest/globals';
import { isFlag } from 'millrace/values';
import { checkModelCall, settingsRules, type VendorSettings } from './settings.js';
import { vendorModel } from './vendor-model.js';
import { exchangeWith, respond } from './wire.test-support.js';

const check =
  (options: unknown, model: unknown = 'acme-1') =>
  (): void =>
    checkModelCall({
      vendor: 'Acme',
      example: 'acme-1',
      model,
      options,
      rules: { ...settingsRules, store: isFlag },
    });

describe('checkModelCall', () => {
  it.each<[string, unknown]>([
    ['none', {}],
    ['what is undefined', { apiKey: undefined, retry: undefined }],
    [
      'what there is',
      {
        apiKey: () => 'k',
        baseURL: 'http://127.0.0.1',
        headers: { 'x-team': 'mill' },
        fetch,
        retry: false,
        timeouts: {},
        caps: { depth: 3 },
        store: true,
      },
    ],
  ])('takes %s', (_, options) => expect(check(options)).not.toThrow());

  it.each<[string, object, string]>([
    [
      'a misspelt option',
      { apikey: 'sk-secret' },
      "no option 'apikey'. Did you mean 'apiKey'? Its options are: apiKey, ",
    ],
    ['a number for a key', { apiKey: 5 }, "'apiKey' must be a string or a function"],
    ['a number for an address', { baseURL: 7 }, "'baseURL' must be a string"],
    ['a text for headers', { headers: 'x-key: sk-secret' }, "'headers' must be an object"],
    ['a list of headers', { headers: [['x-key', 'sk-secret']] }, "'headers' must be an object"],
    ['a Headers', { headers: new Headers({ key: 'sk-secret' }) }, "'headers' must be an object"],
    ['a header without text', { headers: { 'x-team': 5 } }, "'headers' must be an object"],
    ['an address for fetch', { fetch: 'http://127.0.0.1' }, "'fetch' must be a function"],
    ['true for retry', { retry: true }, "'retry' must be false or an object"],
    ['a number for time-outs', { timeouts: 5 }, "'timeouts' must be an object"],
    ['a number for caps', { caps: 5 }, "'caps' must be an object"],
    ['a word for a flag of its own', { store: 'yes' }, "'store' must be true or false"],
  ])('C7, X10: refuses %s, and shows no secret', (_, options, message) => {
    expect(check(options)).toThrow(
      expect.objectContaining({ code: 'config', message: expect.stringContaining(message) }),
    );
    expect(check(options)).not.toThrow('sk-secret');
  });

  it.each([null, '', ' ', 5])('C7: refuses the name %j', (model) => {
    expect(check({}, model)).toThrow("A model of Acme needs a name, such as 'acme-1'.");
  });

  it('C7: refuses what is no object', () => {
    expect(check('sk-secret')).toThrow('takes an object of options');
    expect(check('sk-secret')).not.toThrow('sk-secret');
  });
});

describe('VendorSettings', () => {
  it('takes what may be undefined, as a variable of the environment', () => {
    const settings: VendorSettings = {
      apiKey: process.env['ACME_NO_SUCH_KEY'],
      baseURL: undefined,
      headers: undefined,
      fetch: undefined,
      retry: undefined,
      timeouts: undefined,
      caps: undefined,
    };
    const spec = { name: 'acme-1', exchange: () => exchangeWith(respond([])) };
    expect(vendorModel(spec, settings).name).toBe('acme-1');
  });
});

describe('vendorModel', () => {
  it.each([
    [{ timeouts: { firstChunkMs: '5' } }, 'firstChunkMs'],
    [{ timeouts: { chunkMS: 5 } }, 'chunkMS'],
    [{ retry: { attempts: 0 } }, 'attempts'],
    [{ caps: { depth: '3' } }, 'depth'],
  ])('C7: refuses %j', (settings, name) => {
    const spec = { name: 'acme-1', exchange: () => exchangeWith(respond([])) };
    expect(() => vendorModel(spec, settings as object)).toThrow(
      expect.objectContaining({ code: 'config', message: expect.stringContaining(`'${name}'`) }),
    );
  });
});
