import { describe, expect, it } from '@jest/globals';
import { withKey } from './with-key.js';

const signal = new AbortController().signal;
const headers = { authorization: 'Bearer sk-2' };

describe('withKey', () => {
  it('sends the key of the request, and lets nobody see it', async () => {
    const known = ['sk-1'];
    const sent: unknown[] = [];
    const credentials = () => Promise.resolve({ headers, secret: 'sk-2' });
    const { secrets, send } = withKey({ credentials, secrets: known }, (init) => {
      sent.push(init);
      return Promise.resolve(new Response());
    });
    expect(secrets).toEqual(['sk-1']);
    await send(signal);
    await send(signal);
    expect(secrets).toEqual(['sk-1', 'sk-2']);
    expect(known).toEqual(['sk-1']);
    expect(sent).toEqual([
      { signal, headers },
      { signal, headers },
    ]);
  });
});
