import { describe, expect, it } from '@jest/globals';
import { toMarkdown } from './to-markdown.js';
import type { UiMessage } from './ui-message.js';

describe('a conversation as Markdown', () => {
  it('has questions, answers, tools and sources, and no hidden parts', () => {
    const messages: readonly UiMessage[] = [
      {
        id: 'q',
        role: 'user',
        parts: [
          {
            type: 'file',
            url: 'data:text/plain;base64,c2VjcmV0',
            mediaType: 'text/plain',
            filename: 'a_b.txt',
          },
          { type: 'text', text: '# Not a title\n<b>?', isOpen: false },
        ],
      },
      {
        id: 'a',
        role: 'assistant',
        parts: [
          { type: 'sources', sources: [{ source: 'https://x.org', title: 'X' }] },
          { type: 'reasoning', text: 'secret', isOpen: false },
          {
            ...{ type: 'tool', toolCallId: 't', toolName: 'pay', state: 'denied' },
            ...{ input: { secret: 1 }, output: 'secret', errorText: 'secret' },
          },
          {
            type: 'suspended',
            data: { toolCallId: 't', toolName: 'pay', localId: 't', request: 'secret' },
          },
          { type: 'data', name: 'state', data: 'secret' },
          { type: 'text', text: 'It is **5**.', isOpen: false },
        ],
        end: { error: { text: 'Broken.', retryable: true } },
      },
    ];
    expect(toMarkdown('My\nchat', messages, { pay: { input: { title: 'Pay a bill' } } })).toBe(
      [
        '# My chat',
        '## You',
        '*File: a\\_b.txt*',
        '\\# Not a title  \n\\<b\\>?',
        '## Answer',
        '- X: https://x.org',
        '*Tool Pay a bill: denied*',
        'It is **5**.',
        '*Error: Broken.*\n',
      ].join('\n\n'),
    );
  });
});
