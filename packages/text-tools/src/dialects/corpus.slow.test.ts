import { describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { corpus } from './corpus/index.test-support.js';
import type { Expected, Sample } from './corpus/sample.test-support.js';
import { dialects, type Replied, replied, textIn } from './reading.test-support.js';

const outcome = ({ chunks, reports }: Replied): { expected: Expected; by: Sample['by'] } => {
  const malformed = chunks.find((chunk) => chunk.type === 'malformed');
  const uses = chunks.flatMap((chunk) =>
    chunk.type === 'toolCall' ? [[chunk.name ?? '', chunk.input] as const] : [],
  );
  const by = reports.some(({ type }) => type === 'repaired') ? 'repair' : 'local';
  if (malformed?.isThought === true) {
    return { expected: { thought: textIn(chunks, 'thinking') }, by };
  }
  if (malformed !== undefined) {
    return { expected: { refused: true }, by: 'refused' };
  }
  if (uses.length > 0) return { expected: { uses } as Expected, by };
  return { expected: { answer: textIn(chunks, 'text') }, by };
};

describe('P3: broken and odd replies', () => {
  it.each(corpus.map((sample) => [`${sample.dialect}: ${sample.name}`, sample] as const))(
    '%s',
    async (_, { dialect, text, expected, by }) => {
      const reply = await replied(dialects[dialect], [text]);
      expect(outcome(reply)).toEqual({ expected, by });
      if ('refused' in expected) {
        expect(reply.chunks.some(({ type }) => type === 'toolCall')).toBe(false);
      }
      expect(reply.chunks.at(-1)).toEqual({ type: 'finish', finish: 'stop' });
    },
  );

  it('P3: are counted in docs/text-tools.md', () => {
    const count = (by: Sample['by']): number => corpus.filter((it) => it.by === by).length;
    const page = join(import.meta.dirname, '../../../../docs/text-tools.md');
    expect(corpus.length).toBeGreaterThanOrEqual(150);
    expect(readFileSync(page, 'utf8').replaceAll(/\s+/g, ' ')).toContain(
      `Of [${corpus.length} broken and odd replies](../packages/text-tools/src/dialects/corpus), ${count('local')} are read as they are, ${count('repair')} by a repair, and ${count('refused')} are refused`,
    );
  });

  it('X15: pollutes nothing', () => {
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });
});
