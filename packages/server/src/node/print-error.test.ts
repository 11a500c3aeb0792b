import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { createAgent, MillraceError } from 'millrace';
import { scriptedModel } from 'millrace/testing';
import { firstValueFrom, ReplaySubject, Subject, takeUntil, throwError } from 'rxjs';
import { serve, type Served, type ServeOptions } from './index.js';

const failing = () =>
  scriptedModel(() =>
    throwError(
      () => new MillraceError('auth', 'No such key.\nCall b: all is well\u001B[2K\u202E!'),
    ),
  );

const question = JSON.stringify({
  id: 'a',
  trigger: 'submit-message',
  messages: [{ id: 'q', role: 'user', parts: [{ type: 'text', text: 'Hi' }] }],
});

/** Posts to a server whose model fails, and reads the whole response. */
const post = async (body: string, options: ServeOptions = {}): Promise<string> => {
  const over$ = new Subject<void>();
  const served$ = new ReplaySubject<Served>(1);
  serve(createAgent({ model: failing() }), { port: 0, signals: [], ...options })
    .pipe(takeUntil(over$))
    .subscribe(served$);
  try {
    const { url } = await firstValueFrom(served$);
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(`${url}/api/chat`, { method: 'POST', headers, body });
    return await response.text();
  } finally {
    over$.next();
  }
};

describe('errors of a server on a port', () => {
  const printed: unknown[][] = [];
  beforeEach(() => {
    printed.length = 0;
    jest.spyOn(console, 'error').mockImplementation((...said) => void printed.push(said));
  });
  afterEach(() => {
    jest.restoreAllMocks();
  });

  it('are printed as one line each, which names the call', async () => {
    await post(question);
    expect(printed).toEqual([
      [expect.stringMatching(/^Call \S+: No such key\. Call b: all is well \[2K ! \(auth\)$/)],
    ]);
  });

  it('go to onError instead', async () => {
    const errors: string[] = [];
    await post(question, { onError: ({ code }) => errors.push(code) });
    expect([errors, printed]).toEqual([['auth'], []]);
  });

  it('leave out malformed requests', async () => {
    expect(await post('{')).toContain('invalidRequest');
    expect(printed).toEqual([]);
  });
});
