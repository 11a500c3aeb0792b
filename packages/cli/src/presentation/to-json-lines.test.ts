import { describe, expect, it } from '@jest/globals';
import { createAgent, MillraceError, tool } from 'millrace';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { catchError, EMPTY, lastValueFrom, of, toArray } from 'rxjs';
import { toJsonLines } from './to-json-lines.js';

const linesOf = async (...given: Parameters<typeof createAgent>) => {
  const line$ = createAgent(...given)
    .stream$('?', { callId: 'c' })
    .pipe(
      toJsonLines,
      catchError(() => EMPTY),
      toArray(),
    );
  return (await lastValueFrom(line$)).map((line) => {
    expect(line.endsWith('\n')).toBe(true);
    return JSON.parse(line) as Record<string, unknown>;
  });
};

describe('toJsonLines', () => {
  it('writes each event as a line', async () => {
    const lines = await linesOf({ model: scriptedModel([text('a\nb')]) });
    expect(lines.map(({ seq, type }) => `${String(seq)} ${String(type)}`)).toEqual([
      '1 preCall',
      '2 preReasoning',
      '3 reasoningChunk',
      '4 postReasoning',
      '5 postCall',
    ]);
    expect(lines[2]).toMatchObject({ delta: 'a\nb', callId: 'c' });
  });

  it('keeps of an error what is safe', async () => {
    const cause = new Error('sk-secret');
    const model = scriptedModel(() => {
      throw new MillraceError('auth', 'The key was refused.', { cause });
    });
    const last = (await linesOf({ model })).at(-1);
    expect(last).toMatchObject({
      type: 'error',
      error: {
        code: 'auth',
        message: 'The key was refused.',
        userMessage: 'Something went wrong.',
        retryable: false,
      },
    });
    expect(JSON.stringify(last)).not.toMatch(/secret|stack|cause/);
  });

  it('omits what JSON cannot hold, and reports it', async () => {
    const circular: Record<string, unknown> = { big: 1n };
    const odd = tool({
      name: 'odd',
      description: 'Is odd.',
      run: () => of({ big: 1n }, circular, 'x'),
    });
    circular['self'] = circular;
    const lines = await linesOf({
      model: scriptedModel([toolCall('odd')], [text('Done.')]),
      tools: [odd],
    });
    const progress = lines.filter(({ type }) => type === 'actingChunk');
    expect(progress[0]).toMatchObject({ value: { big: '1' } });
    expect(progress[1]).toMatchObject({
      seq: expect.any(Number),
      omitted: expect.stringMatching(/circular/),
    });
  });
});
