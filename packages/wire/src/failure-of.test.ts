import { describe, expect, it } from '@jest/globals';
import { MillraceError } from 'millrace';
import { failureOf } from './failure-of.js';

const clean = (text: string): string => text;

const of = (thrown: unknown, url?: string) => failureOf('Acme', thrown, { clean, url });

const system = (code: string, more: object = {}): Error =>
  Object.assign(new Error(`${code} happened`), { code, ...more });

const fetchFailed = (cause: unknown): Error => new TypeError('fetch failed', { cause });

describe('failureOf', () => {
  it.each([
    ['ECONNREFUSED', 'connection', true],
    ['ECONNRESET', 'connection', true],
    ['ENOTFOUND', 'connection', true],
    ['EAI_AGAIN', 'connection', true],
    ['EPIPE', 'connection', true],
    ['EHOSTUNREACH', 'connection', true],
    ['UND_ERR_SOCKET', 'connection', true],
    ['UND_ERR_HEADERS_TIMEOUT', 'timeout', true],
    ['UND_ERR_BODY_TIMEOUT', 'timeout', true],
    ['UND_ERR_CONNECT_TIMEOUT', 'timeout', true],
    ['ETIMEDOUT', 'timeout', true],
    ['CERT_HAS_EXPIRED', 'connection', false],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'connection', false],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'connection', false],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'connection', false],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'connection', false],
    ['Z_DATA_ERROR', 'invalidResponse', false],
    ['HPE_INVALID_CONSTANT', 'invalidResponse', false],
    ['ERR_INVALID_URL', 'config', false],
  ])('C7: %s below what fetch throws is %s', (sign, code, retryable) => {
    expect(of(fetchFailed(system(sign)))).toMatchObject({ code, retryable });
    expect(of(new TypeError('terminated', { cause: system(sign) }))).toMatchObject({ code });
    expect(of(fetchFailed(system(sign))).message).toContain(sign);
  });

  it.each([
    ['a failed fetch', new TypeError('fetch failed'), 'connection'],
    ['a body that broke off', new TypeError('terminated'), 'connection'],
    ['a DOM time-out', new DOMException('x', 'TimeoutError'), 'timeout'],
    ['an abort', new DOMException('x', 'AbortError'), 'aborted'],
    ['an error', new Error('x'), 'unknown'],
    ['a text', 'x', 'unknown'],
    ['nothing', undefined, 'unknown'],
    ['an object without a prototype', Object.create(null), 'unknown'],
  ])('C7: knows %s', (_, thrown, code) => {
    expect(of(thrown).code).toBe(code);
  });

  it('reports that nothing answered, and how to fix it', () => {
    const refused = fetchFailed(system('ECONNREFUSED'));
    expect(of(refused, 'http://127.0.0.1:11434/v1').message).toBe(
      'Acme at 127.0.0.1:11434 does not answer (ECONNREFUSED). Is the server running, and is the base URL correct?',
    );
    const both = new AggregateError([system('ENETUNREACH'), system('ECONNREFUSED')]);
    expect(of(fetchFailed(both)).message).toContain('Acme does not answer (ECONNREFUSED)');
  });

  it.each([
    [fetchFailed(system('UND_ERR_SOCKET')), 'closed the connection (UND_ERR_SOCKET).'],
    [fetchFailed(system('UND_ERR_CONNECT_TIMEOUT')), 'did not answer in time'],
    [fetchFailed(new Error('bad port')), 'cannot be reached, because fetch blocks this port'],
    [new TypeError('terminated'), 'could not be reached, or closed the connection'],
  ])('names host and port: %s', (thrown, did) => {
    const said = (vendor: string, url: string): string =>
      failureOf(vendor, { cause: thrown }, { clean, url }).message;
    expect(said('Acme', 'https://acme.example/v1?k=1')).toContain(
      `Acme at acme.example:443 ${did}`,
    );
    expect(said('Acme', 'http://[::1]:9/v1')).toContain(`Acme at [::1]:9 ${did}`);
    expect(said('The server at 127.0.0.1:11434', 'http://127.0.0.1:11434/v1')).toContain(
      `The server at 127.0.0.1:11434 ${did}`,
    );
  });

  it('reads well with a vendor that is called by its host', () => {
    const server = 'The server at 127.0.0.1:11434';
    expect(failureOf(server, new Error('x'), { clean }).message).toBe(
      'The request to the server at 127.0.0.1:11434 failed: x',
    );
  });

  it.each(['unexpected redirect', 'redirect count exceeded'])(
    'knows a redirect that fetch does not follow: %s',
    (message) => {
      expect(of(fetchFailed(new Error(message)))).toMatchObject({
        code: 'redirect',
        retryable: false,
      });
    },
  );

  it('refuses a blocked port for good', () => {
    expect(of(fetchFailed(new Error('bad port')))).toMatchObject({ code: 'config' });
  });

  it('passes on an error that is classified already, however deep', () => {
    const ours = new MillraceError('config', 'no');
    expect(of(ours)).toBe(ours);
    expect(of(new Error('outer', { cause: ours }))).toBe(ours);
  });

  it('ends with a chain of causes that is a ring', () => {
    const ring = new Error('ring');
    ring.cause = ring;
    expect(of(ring).code).toBe('unknown');
  });
});
