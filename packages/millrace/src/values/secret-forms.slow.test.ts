import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { withoutSecrets } from './index.js';
import { namedSecrets, secretForms } from './secret-forms.js';

const of = (characters: string, length: number) =>
  fc.string({ unit: fc.constantFrom(...characters), minLength: length, maxLength: length + 20 });
const digits = '0123456789';
const letters = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ';
const hex = fc.string({
  unit: fc.constantFrom(...digits, ...'abcdef'),
  minLength: 32,
  maxLength: 32,
});
const upper = fc.string({
  unit: fc.constantFrom(...digits, ...letters.slice(26)),
  minLength: 16,
  maxLength: 16,
});
const random = (length: number) =>
  fc.tuple(of(digits + letters, length), of(digits, 1)).map((parts) => parts.join(''));
const after = (prefix: string, length = 20) => random(length).map((it) => prefix + it);

/** Keys of which the form says what they are. */
const issued: Readonly<Record<string, fc.Arbitrary<string>>> = {
  ...Object.fromEntries(
    ['sk-', 'sk-ant-api03-', 'sk-proj-', 'sk_live_', 'pk_test_', 'rk_live_', 'xai-', 'gsk_', 'hf_']
      .concat(['r8_', 'pplx-', 'nvapi-', 'tvly-', 'fw_', 'glpat-', 'dop_v1_', 'npm_', 'key-'])
      .concat(['key_', 'whsec_', 'lsv2_pt_', 'ya29.', 'ghp_', 'gho_', 'ghs_', 'ghu_', 'ghr_'])
      .concat(['github_pat_', 'xoxb-', 'xoxp-', 'xapp-1-'])
      .map((prefix) => [prefix, after(prefix)]),
  ),
  'a key of letters': of(letters, 24).map((it) => `sk-live-${it}`),
  'a key of Google': after('AIza', 35),
  'a key of AWS': upper.map((it) => `AKIA${it}`),
  'a key of AWS for a session': upper.map((it) => `ASIA${it}`),
  'a key of notebooks': hex.map((it) => `dapi${it}`),
  'a key of mail': fc.tuple(random(22), random(43)).map(([a, b]) => `SG.${a}.${b}`),
  'a JSON Web Token': fc
    .tuple(random(20), random(20), random(20))
    .map(([a, b, c]) => `eyJ${a}.eyJ${b}.${c}`),
  'an encrypted JSON Web Token': fc
    .tuple(random(20), random(16), random(20), random(20))
    .map(([a, b, c, d]) => `eyJ${a}..${b}.${c}.${d}`),
};

/** Secrets that only their place gives away. */
const unknown = random(20);

const refused = 'The request 17 was refused';

/** Places that give away nothing. */
const places: Readonly<Record<string, (secret: string) => string>> = {
  'the text of an error': (it) => `${refused}: the key ${it} is wrong.`,
  'a quote in an error': (it) => `${refused}: '${it}' is no key.`,
};

const namedPlaces: Readonly<Record<string, (secret: string) => string>> = {
  'a URL': (it) => `${refused}: GET https://vendor.example/v1?page=2&key=${it}&x=1 failed`,
  'a URL with a password': (it) => `${refused}: postgres://ann:${it}@db.example/x`,
  'a parameter': (it) => `${refused}: /v1?api_key=${it}&x=1`,
  'a header': (it) => `${refused}, x-api-key: ${it}\nhost: vendor.example`,
  'a header with a scheme': (it) => `${refused}, Authorization: Bearer ${it}\nhost: vendor.example`,
  'a header with another scheme': (it) => `${refused}, authorization: Basic ${it}`,
  'a command': (it) => `${refused}: curl -H "x-goog-api-key: ${it}" https://vendor.example`,
  'a variable': (it) => `${refused}: AWS_SECRET_ACCESS_KEY=${it} node main.js`,
  JSON: (it) => `${refused}: ${JSON.stringify({ apiKey: it, page: 2 })}`,
  'JSON of headers': (it) => `${refused}: ${JSON.stringify({ Authorization: `Bearer ${it}` })}`,
  'a string of JSON': (it) =>
    `${refused}: ${JSON.stringify({ body: JSON.stringify({ client_secret: it, page: 2 }) })}`,
  'a literal': (it) => `${refused}: createClient({ password: '${it}', page: 2 })`,
};

const isHidden = (place: (secret: string) => string, secret: fc.Arbitrary<string>): void =>
  fc.assert(
    fc.property(secret, (it) => {
      const clean = withoutSecrets(place(it));
      expect(clean).toContain('[redacted]');
      expect(clean).not.toContain(it.slice(-10));
      expect(clean.startsWith(refused)).toBe(true);
      // Twice is as once: an error may be cleaned at several places.
      expect(withoutSecrets(clean)).toBe(clean);
    }),
    { numRuns: 10 },
  );

describe('a secret of a known form', () => {
  it.each(Object.entries({ ...namedPlaces, ...places }))('is hidden in %s', (_, place) => {
    for (const secret of Object.values(issued)) isHidden(place, secret);
  });
});

describe('a secret of no known form', () => {
  it.each(Object.entries(namedPlaces))('is hidden in %s', (_, place) => isHidden(place, unknown));

  it('is hidden to its closing quote', () => {
    const given = `${JSON.stringify({ password: 'a "b" c, d' })} and ${JSON.stringify(JSON.stringify({ token: 'efgh, ij' }))}`;
    expect(withoutSecrets(given)).toBe(
      String.raw`{"password":"[redacted]"} and "{\"token\":\"[redacted]\"}"`,
    );
  });

  it('is a private key, with its end and without', () => {
    const begin = ['-----BEGIN RSA PRIVATE', 'KEY-----'].join(' ');
    const end = begin.replace('BEGIN', 'END');
    const line = 'MIIEowIBAAKCAQEA0123456789+/abcdefghijklmnop';
    for (const newline of ['\n', '\\n']) {
      const whole = [begin, line, line, end].join(newline);
      expect(withoutSecrets(`${whole} is wrong`)).toBe('[redacted] is wrong');
      const cut = [begin, line, line].join(newline);
      expect(withoutSecrets(`${cut}… is wrong`)).toBe('[redacted]… is wrong');
    }
  });
});

it.each([
  'sk-learn-is-a-library, task-2026-planning-item, key-value stores, a task-oriented word',
  'Unexpected token: function, and {"token": null, "secret": true, "inputTokens": 123456}',
  'Basic authentication is not supported, Bearer of bad news, Basic internationalization',
  'password: {"type":"string"}, authorization: none, the api key is missing',
  '-H "Authorization: Bearer $API_KEY", api_key=$KEY, {"password":"${PASSWORD}"}',
  'https://example.org/a:b@c, ["http://localhost:8080","a@b.org"], https://a.example/?keys=1',
])('leaves ordinary text alone: %s', (text) => {
  expect(withoutSecrets(text)).toBe(text);
});

it('takes linear time', () => {
  const begin = ['-----BEGIN PRIVATE', 'KEY-----'].join(' ');
  const pieces = ['sk-', 'eyJ-', 'eyJaaaaaaaa.', 'eyJaaaaaaaa.eyJaaaaaaaa-', 'SG.', 'whsec_', '@']
    .concat(['a://b:', 'api_key=', 'token: ', '"secret":"', String.raw`password=\"`, 'Bearer '])
    .concat(['&key=', 'sk-aa-', 'a', begin, `${begin}aaaaaaaaaaaaaaaa`]);
  const startedAt = process.cpuUsage().user / 1_000;
  for (const piece of pieces) withoutSecrets(piece.repeat(200_000 / piece.length));
  // A quadratic pattern takes more than ten seconds.
  expect(process.cpuUsage().user / 1_000 - startedAt).toBeLessThan(5_000);
});

it('has forms that replace all matches', () => {
  for (const form of [...secretForms, ...namedSecrets]) expect(form.global).toBe(true);
});
