import type { ModelChunk } from 'millrace';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { DialectName } from './corpus/sample.test-support.js';
import { dialects, joinDeltas, replied } from './reading.test-support.js';

const names: readonly DialectName[] = ['action', 'flat', 'lines', 'steps'];

/** Parts of replies, with characters of two UTF-16 units in each place of the protocol. */
const parts = [
  ...[
    '😀',
    '👩‍👧',
    'é',
    ' a ',
    '.',
    '\n',
    '\n\n',
    ' ',
    '\u200B',
    '𝒙',
    '“',
    '”',
    '\\',
    '\\ud83d\\ude00',
  ],
  ...['Thought: ', '\nAction: ', '\nAction Input: ', '\nFinal Answer: ', 'search', '- ', '**', '`'],
  ...[
    '{"tool": "search", "inputs": {"q": "😀"}}',
    '{"answer": "',
    '{"name": "😀", "x": "',
    '"}',
    '"',
  ],
  ...['<think>', '</think>', '<tool_call>', '</tool_call>', '```json\n', '\n```\n', '> '],
  ...[
    '{"name": "search", "arguments": {"q": "',
    '[{"name": "complete_task", "arguments": {"answer": "',
  ],
  ...["{'tool': '😀'}", '<|im_end|>', '\nObservation: ', 'Final Answer: 𝒙'],
];
const replies = fc
  .array(fc.constantFrom(...parts), { minLength: 1, maxLength: 10 })
  .map((chosen) => chosen.join(''));
/** Lengths of pieces, which are repeated to the end of the reply. */
const lengths = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 6 });

const cut = (reply: string, each: readonly number[]): readonly string[] => {
  const pieces: string[] = [];
  for (let at = 0; at < reply.length; at += each[(pieces.length - 1) % each.length] ?? 1) {
    pieces.push(reply.slice(at, at + (each[pieces.length % each.length] ?? 1)));
  }
  return pieces;
};
const kept = (chunks: readonly ModelChunk[]): readonly ModelChunk[] =>
  joinDeltas(chunks.slice(chunks.findLastIndex(({ type }) => type === 'restart') + 1));

describe.each(names)('P2: pieces of a reply in the dialect %s', (dialect) => {
  it('P2: any pieces read as the whole, even with a character in two of them', async () => {
    await fc.assert(
      fc.asyncProperty(replies, lengths, async (reply, each) => {
        const pieces = cut(reply, each);
        expect(pieces.join('')).toBe(reply);
        const [inPieces, whole] = [
          await replied(dialects[dialect], pieces),
          await replied(dialects[dialect], [reply]),
        ];
        expect(kept(inPieces.chunks)).toEqual(kept(whole.chunks));
      }),
      {
        examples: [
          '\nAction: `[{"name": "complete_task", "arguments": {"answer": "😀',
          '\nAction Input: `[{"name": "complete_task", "arguments": {"answer": "😀',
          '- - Final Answer: 𝒙😀',
        ].map((reply) => [reply, [1]]),
      },
    );
  });

  it('P2: no delta ends within a character, if no piece does', async () => {
    await fc.assert(
      fc.asyncProperty(replies, async (reply) => {
        const whole = await replied(dialects[dialect], [reply]);
        // An escape in JSON may be half a character.
        fc.pre(!whole.chunks.some((chunk) => /\p{Surrogate}/u.test(wordsOf(chunk))));
        const { chunks } = await replied(dialects[dialect], Array.from(reply));
        for (const chunk of chunks) expect(wordsOf(chunk)).not.toMatch(/\p{Surrogate}/u);
      }),
      { examples: [['{"answer": "\\\\ud83d\\ude00😀']] },
    );
  });
});

const wordsOf = (chunk: ModelChunk): string =>
  chunk.type === 'text' || chunk.type === 'thinking' ? chunk.text : '';
