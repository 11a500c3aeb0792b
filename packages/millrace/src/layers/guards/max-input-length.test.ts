import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { estimateTokens } from '../../models/estimate-tokens.js';
import type { InputMessage } from '../../seams/input.js';
import { said, verdictOn } from './guards.test-support.js';
import { maxInputLength } from './lists.js';

const over = (what: string) => ({
  code: 'guardRejected',
  retryable: false,
  message: expect.stringContaining(what),
  userMessage: 'That is too long. Please shorten it.',
});

const media = (bytes: string): InputMessage => ({
  role: 'user',
  content: [{ type: 'image', source: { kind: 'base64', mediaType: 'image/png', data: bytes } }],
});
const at = (url: string): InputMessage => ({
  role: 'user',
  content: [{ type: 'file', source: { kind: 'url', url } }],
});

describe('maxInputLength', () => {
  it('C1: counts code points', () => {
    const guard = maxInputLength({ characters: 3 });
    expect(verdictOn(guard, 'abc')).toBe('allowed');
    expect(verdictOn(guard, '👍👍👍')).toBe('allowed');
    expect(verdictOn(guard, 'abcd')).toMatchObject(
      over('it has 4 characters, more than the allowed 3'),
    );
  });

  it('C1: counts tokens as estimateTokens does', () => {
    const text = 'A text of some words. 안녕하세요 👍';
    const tokens = estimateTokens(text);
    expect(verdictOn(maxInputLength({ tokens }), text)).toBe('allowed');
    expect(verdictOn(maxInputLength({ tokens: tokens - 1 }), text)).toMatchObject(over('tokens'));
  });

  it('C1: counts media, and the bytes of those that come with it', () => {
    expect(
      verdictOn(maxInputLength({ blocks: 1 }), [media('AAAA'), at('https://a.test/')]),
    ).toMatchObject(over('it has 2 blocks'));
    expect(verdictOn(maxInputLength({ blocks: 0 }), 'Only text.')).toBe('allowed');
    const guard = maxInputLength({ mediaBytes: 3 });
    expect(verdictOn(guard, [media('AAAA')])).toBe('allowed');
    expect(verdictOn(guard, [media('A A\nA A')])).toBe('allowed');
    expect(verdictOn(guard, [media('AAAAAA==')])).toMatchObject(over('it has 4 mediaBytes'));
    expect(verdictOn(guard, [media('AAAA'), media('AA==')])).toMatchObject(
      over('it has 4 mediaBytes'),
    );
    expect(verdictOn(guard, [at('https://a.test/a/long/path')])).toBe('allowed');
  });

  it.each([
    ['an inline address', { mediaBytes: 9 }, at(`data:text/plain;base64,${'AAAA'.repeat(4)}`)],
    ['an inline text', { mediaBytes: 9 }, at('DATA:text/plain,0123456789')],
    ['an address', { characters: 9 }, at('https://a.test/0123')],
    ['the name of a user', { characters: 9 }, { ...said('a'), name: '0123456789' }],
    [
      'the name of a file',
      { characters: 9 },
      {
        role: 'user',
        content: [{ type: 'file', name: '0123456789', source: { kind: 'url', url: 'data:,' } }],
      },
    ],
    [
      'what another role says',
      { characters: 9 },
      { role: 'assistant', content: [{ type: 'thinking', text: '0123456789' }] },
    ],
    [
      'the arguments of a tool',
      { characters: 9 },
      {
        role: 'assistant',
        content: [{ type: 'tool_call', id: 't', name: 't', input: { a: '0123' } }],
      },
    ],
    [
      'the result of a tool',
      { characters: 9 },
      {
        role: 'tool',
        content: [
          {
            type: 'tool_result',
            toolCallId: 't',
            isError: false,
            content: [{ type: 'text', text: '0123456789' }],
          },
        ],
      },
    ],
  ])('C1: nothing hides in %s', (_, limits, message) => {
    expect(verdictOn(maxInputLength(limits), [message as InputMessage])).toMatchObject({
      code: 'guardRejected',
    });
  });

  it('C1: how the text is split makes no difference', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary', maxLength: 20 }),
        fc.nat(20),
        fc.boolean(),
        (text, cut, inBlocks) => {
          const guard = maxInputLength({ characters: 10, tokens: 6 });
          const parts = [text.slice(0, cut), text.slice(cut)];
          const [whole, parted] = [verdictOn(guard, text), verdictOn(guard, parts, inBlocks)];
          expect(String(parted)).toBe(String(whole));
        },
      ),
    );
  });

  it('C1: refuses options that cannot be', () => {
    expect(() => maxInputLength({})).toThrow(
      'needs at least one limit: characters, tokens, blocks, mediaBytes',
    );
    expect(() => maxInputLength({ characters: 0 })).toThrow('a whole number of at least 1');
    expect(() => maxInputLength({ letters: 5 } as never)).toThrow("no option 'letters'");
  });

  it('C1: shows users the message of its option', () => {
    const guard = maxInputLength({ characters: 1, userMessage: 'One letter!', name: 'short' });
    expect(verdictOn(guard, 'ab')).toMatchObject({
      userMessage: 'One letter!',
      message: expect.stringContaining("The guard 'short' rejected the input"),
    });
  });
});
