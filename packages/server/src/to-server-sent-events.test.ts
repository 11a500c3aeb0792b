import { describe, expect, it } from '@jest/globals';
import { marbles } from 'millrace/testing';
import { agUiHeaders, toServerSentEvents, uiMessageStreamHeaders } from './index.js';

describe('toServerSentEvents', () => {
  it('writes each value as an event immediately, and ends when the values end', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const value$ = cold('a-b-|', { a: { text: 'line\nline\u2028' }, b: { n: 1 } });
      expectObservable(value$.pipe(toServerSentEvents())).toBe('a-b-|', {
        a: 'data: {"text":"line\\nline\u2028"}\n\n',
        b: 'data: {"n":1}\n\n',
      });
      expectSubscriptions(value$.subscriptions).toBe('^---!');
    });
  });

  it('reports its end if the protocol requires it', () => {
    marbles(({ cold, expectObservable }) => {
      const done = toServerSentEvents({ last: '[DONE]' });
      const values = { a: 'data: {}\n\n', d: 'data: [DONE]\n\n' };
      expectObservable(cold('a-|', { a: {} }).pipe(done)).toBe('a-(d|)', values);
      expectObservable(cold('a-#', { a: {} }).pipe(done)).toBe('a-#', values);
    });
  });

  it('refuses what would break the stream', () => {
    expect(() => toServerSentEvents({ last: 'a\n\ndata: b' })).toThrow(
      /'last' must be a string without line breaks/,
    );
    expect(() => toServerSentEvents({ end: 'x' } as object)).toThrow(/no option 'end'/);
  });
});

it('names the protocols in the headers', () => {
  expect(new Headers(uiMessageStreamHeaders).get('x-vercel-ai-ui-message-stream')).toBe('v1');
  expect(new Headers(agUiHeaders).get('content-type')).toBe('text/event-stream');
});
