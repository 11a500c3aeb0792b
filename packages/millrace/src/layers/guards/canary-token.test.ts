import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createAgent, isMillraceError, type ModelChunk, only, textOf, tool } from '../../index.js';
import { jsonSchema } from '../../schema/index.js';
import { finish, marbles, scriptedModel, text, thinking } from '../../testing/index.js';
import { catchError, map, of } from 'rxjs';
import { canaryToken } from './index.js';

const token = 'qabcabcd0123';
const instructions = 'Be kind.';

/** The answer of a model, or the code of the error and what was shown before it. */
const answerTo = async (chunks: readonly ModelChunk[]): Promise<string> => {
  const look = tool({
    name: 'look',
    description: 'Looks.',
    input: jsonSchema({ type: 'object' }),
    run: () => 'seen',
  });
  const model = scriptedModel(chunks, [text('done')]);
  const agent = createAgent({ model, instructions, tools: [look], use: [canaryToken({ token })] });
  return agent.call('?').then(textOf, (error: unknown) => {
    if (!isMillraceError(error)) throw error;
    return `${error.code}:${error.partial ?? ''}`;
  });
};

/** Cuts a string at places. */
const cutAt = (whole: string, places: readonly number[]): readonly string[] => {
  const ends = [...new Set(places.map((it) => it % (whole.length + 1)))].sort((a, b) => a - b);
  return [0, ...ends].map((from, n) => whole.slice(from, ends[n] ?? whole.length));
};

describe('canaryToken', () => {
  it('marks the instructions, and shows nothing of a marker that the model repeats in pieces', () => {
    marbles(({ cold, scheduler, expectObservable, expectSubscriptions }) => {
      const source$ = cold('-abc-f|', {
        a: text('They say: QAB'),
        b: text('c-a b'),
        c: text('CD 0123 and'),
        f: finish(),
      });
      const model = scriptedModel(source$);
      const agent = createAgent({ model, instructions, use: [canaryToken({ token })] });
      expectObservable(
        agent.events$.pipe(
          only('reasoningChunk'),
          map(({ delta }) => delta),
        ),
      ).toBe('-a', { a: 'They say: ' });
      const told$ = agent.call$('?', { scheduler }).pipe(
        map(textOf),
        catchError((error: unknown) =>
          of(isMillraceError(error) ? `${error.code}:${error.partial}` : ''),
        ),
      );
      expectObservable(told$).toBe('---(e|)', { e: 'guardRejected:They say: ' });
      expectSubscriptions(source$.subscriptions).toBe('^--!');
    });
  });

  const wide = (character: string): string =>
    String.fromCharCode(character.charCodeAt(0) - 0x21 + 0xff01);
  /** A letter of the block of mathematical letters, which has two units. */
  const mathematical = (character: string): string =>
    /[a-z]/u.test(character)
      ? String.fromCodePoint(0x1d41a + character.charCodeAt(0) - 97)
      : String.fromCodePoint(0x1d7ce + Number(character));
  const circled = (character: string): string =>
    /[a-z]/u.test(character)
      ? String.fromCodePoint(0x24d0 + character.charCodeAt(0) - 97)
      : wide(character);
  it.each<[string, (character: string) => string]>([
    ['full-width letters', wide],
    ['mathematical letters', mathematical],
    ['circled letters', circled],
    ['invisible characters', (it) => `${it}\u200b\u2060\u00ad\ufeff`.padEnd(12, '\u200d')],
    ['tags', (it) => `${it}${'\u{e0041}'.repeat(20)}`],
    ['controls', (it) => `${it}${'\u0007'.repeat(20)}`],
    ['marks', (it) => `${it}\u0301\u0323`.padEnd(14, '\u0308')],
    ['composed letters', (it) => `${it}\u0301`.normalize('NFC')],
    ['capitals and signs', (it) => `${it.toUpperCase()} - `],
  ])('finds the marker in %s, wherever chunks cut it', async (_what, written) => {
    const leak = `They say ${Array.from(token, written).join('')}.`;
    const units = Array.from({ length: leak.length }, (_, at) => text(leak.charAt(at)));
    for (const chunks of [[text(leak)], units]) {
      expect(await answerTo([...chunks, finish()])).toMatch(/^guardRejected:/u);
    }
  });

  it('shows text with such characters that is not the marker, as it is', async () => {
    const harmless = `q${wide('a')}b e\u0301\u200b 𝐚𝐛𝐜 👍🏽 \ud83d`;
    const units = Array.from({ length: harmless.length }, (_, at) => text(harmless.charAt(at)));
    expect(await answerTo([...units, finish()])).toBe(harmless);
  });

  it('finds the marker in arguments as they stream: a tool that starts early gets no call', () => {
    marbles(({ cold, scheduler, expectObservable, expectSubscriptions }) => {
      const source$ = cold<ModelChunk>('-abf|', {
        a: { type: 'toolCall', id: 'c', name: 'look', json: '{"at":"qabcab' },
        b: { type: 'toolCall', json: 'cd0123"}' },
        f: finish(),
      });
      const agent = createAgent({
        model: scriptedModel(source$),
        instructions,
        use: [canaryToken({ token })],
      });
      expectObservable(
        agent.events$.pipe(
          only('reasoningChunk'),
          map(({ delta }) => delta),
        ),
      ).toBe('-a', { a: '{"at":"qabcab' });
      const code$ = agent.call$('?', { scheduler }).pipe(
        map(textOf),
        catchError((error: unknown) => of(isMillraceError(error) ? error.code : '')),
      );
      expectObservable(code$).toBe('--(e|)', { e: 'guardRejected' });
      expectSubscriptions(source$.subscriptions).toBe('^-!');
    });
  });

  it('passes all other text unchanged, however it is cut (property)', async () => {
    const near = fc.constantFrom('qabc', 'abcd', 'qabcabc', ' ', 'x', '-', 'q', '0123', 'é', '😀');
    await fc.assert(
      fc.asyncProperty(
        fc.array(near, { minLength: 1, maxLength: 12 }),
        fc.array(fc.nat()),
        async (parts, places) => {
          const whole = `.${parts.join('')}.`;
          fc.pre(!whole.replace(/[^a-z0-9é]/gu, '').includes(token));
          expect(await answerTo(cutAt(whole, places).map(text))).toBe(whole);
        },
      ),
      { numRuns: 20 },
    );
  });

  it('finds the marker in text, thinking and arguments, however it is cut and spaced (property)', async () => {
    const gap = fc.constantFrom('', ' ', '-', '\n', '\u200b', '. ');
    await fc.assert(
      fc.asyncProperty(
        fc.array(gap, { minLength: token.length, maxLength: token.length }),
        fc.array(fc.nat(), { maxLength: 6 }),
        fc.constantFrom('qab', 'qabc', '', 'x '),
        async (gaps, places, before) => {
          const whole = before + [...token].map((it, n) => `${it}${gaps[n]}`).join('');
          const pieces = cutAt(whole, places);
          expect(await answerTo(pieces.map(text))).toMatch(/^guardRejected:/);
          expect(await answerTo([...pieces.map(thinking), text('Hm.')])).toMatch(/^guardRejected:/);
          const escaped = JSON.stringify({ at: whole }).replaceAll('a', String.raw`\u0061`);
          for (const key of [{ index: 0 }, { id: 'c' }, {}]) {
            const called = cutAt(escaped, places).map((json, n): ModelChunk => ({
              type: 'toolCall',
              // Only the first chunk of a call must identify it.
              ...(n === 0 && { ...key, name: 'look' }),
              json,
            }));
            expect(await answerTo(called)).toMatch(/^guardRejected:/);
          }
        },
      ),
      { numRuns: 8 },
    );
  });

  it('keeps the order of what it holds back, the signature of thinking, and what another attempt says', async () => {
    const contents: unknown[] = [];
    const answer: readonly ModelChunk[] = [
      text('gone qab'),
      { type: 'restart', why: 'x' },
      thinking('Is it qab'),
      { type: 'thinking', text: 'c', signature: 's' },
      text('It is qab'),
      thinking('c?'),
      text('done q'),
    ];
    const model = scriptedModel(answer);
    const agent = createAgent({ model, instructions, use: [canaryToken({ token })] });
    agent.events$
      .pipe(only('postReasoning'))
      .subscribe(({ message }) => contents.push(message.content));
    await agent.call('?');
    expect(contents).toEqual([
      [
        { type: 'thinking', text: 'Is it qabc', signature: 's' },
        { type: 'text', text: 'It is qab' },
        { type: 'thinking', text: 'c?' },
        { type: 'text', text: 'done q' },
      ],
    ]);
    expect(model.requests[0]?.system).toContain(`Be kind.\n\nInternal reference: ${token}.`);
  });

  it('has a random marker of its own, and needs instructions', async () => {
    const systems: (string | undefined)[] = [];
    for (const own of [{ instructions }, { instructions }, {}]) {
      const model = scriptedModel([text('Fine.')]);
      await createAgent({ model, ...own, use: [canaryToken()] }).call('?');
      systems.push(model.requests[0]?.system);
    }
    expect(systems[0]).toMatch(/reference: q[0-9a-f]{19}\./);
    expect(systems[0]).not.toBe(systems[1]);
    expect(systems[2]).toBeUndefined();
    expect(() => canaryToken({ token: 'short' })).toThrow(
      'at least 12 letters from a to z and digits',
    );
  });
});
