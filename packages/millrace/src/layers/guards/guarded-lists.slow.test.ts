import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { map } from 'rxjs';
import { createAgent, history, type Interceptor, isMillraceError, prepare } from '../../index.js';
import type { GivenMessage } from '../../seams/input.js';
import { type ScriptedModel, scriptedModel, text } from '../../testing/index.js';
import { sessions } from '../sessions/index.js';
import { allowList, denyList, guardInput, maxInputLength } from './index.js';

const user = (content: string): GivenMessage => ({ role: 'user', content });
const answer: GivenMessage = { role: 'assistant', content: 'The secret is safe.' };

const answering = (): ScriptedModel =>
  scriptedModel(...Array.from({ length: 9 }, () => [text('The secret is safe.')]));

const verdict = async (call: Promise<unknown>): Promise<string> => {
  const error: unknown = await call.then(
    () => undefined,
    (cause: unknown) => cause,
  );
  if (error === undefined) return 'accepted';
  return isMillraceError(error) && error.code === 'guardRejected' ? 'rejected' : String(error);
};

const guards: Readonly<Record<string, () => Interceptor>> = {
  denyList: () => denyList(['secret']),
  allowList: () => allowList([/^(?:good|long )/]),
  maxInputLength: () => maxInputLength({ characters: 20 }),
  guardInput: () => guardInput(({ text: asked }) => !asked.includes('secret'), { history: true }),
};

const questions = fc.array(
  fc.array(fc.constantFrom('good', 'a secret', 'other', 'long '.repeat(6)), {
    minLength: 1,
    maxLength: 2,
  }),
  { minLength: 1, maxLength: 4 },
);

describe('guards and the messages before the question', () => {
  it.each(Object.entries(guards))(
    'L9, C1: %s rejects a list if it would have rejected one of its questions in a session',
    async (_, guard) => {
      await fc.assert(
        fc.asyncProperty(questions, async (all) => {
          const inSession = await Promise.all(
            all.map((words) => {
              const agent = createAgent({ model: answering(), use: [guard()] });
              return verdict(sessions(agent).open('s').call(words));
            }),
          );
          const list = all.flatMap((words, index) => [
            ...(index === 0 ? [] : [answer]),
            ...words.map(user),
          ]);
          const expected = inSession.find((it) => it !== 'accepted') ?? 'accepted';
          const model = answering();
          const agent = createAgent({ model, use: [guard()] });
          expect(await verdict(agent.call(list))).toBe(expected);
          expect(model.requests).toHaveLength(expected === 'accepted' ? 1 : 0);
          // A session checks those of the list, too.
          expect(await verdict(sessions(agent).open('s').call(list))).toBe(expected);
          const lastOnes = all.at(-1) ?? [];
          const use = [history(list.slice(0, -lastOnes.length), { guard: true })];
          expect(await verdict(agent.call(lastOnes, { use }))).toBe(expected);
        }),
        { numRuns: 40 },
      );
    },
  );

  it('L9, C1: a guard of a program reads the question only, and none reads a history that the program vouches for', async () => {
    const read: string[] = [];
    const use = [guardInput(({ text: asked }) => read.push(asked) > 0), denyList(['secret'])];
    const agent = createAgent({ model: answering(), use });
    expect(await verdict(agent.call([user('good'), answer, user('fine')]))).toBe('accepted');
    const old = history([user('a secret'), answer]);
    expect(await verdict(agent.call('Well?', { use: [old] }))).toBe('accepted');
    expect(read).toEqual(['fine', 'Well?']);
    const off = createAgent({
      model: answering(),
      use: [denyList(['secret'], { history: false })],
    });
    expect(await verdict(off.call([user('a secret'), answer, user('fine')]))).toBe('accepted');
  });

  it('L9, C1: an interceptor before a guard cannot hide the history from it', async () => {
    const hide = prepare(
      map(({ call, input, options }) => ({ call, input, options, history: [] })),
      {
        priority: -1,
      },
    );
    const agent = createAgent({ model: answering(), use: [hide, denyList(['secret'])] });
    expect(await verdict(agent.call([user('a secret'), answer, user('fine')]))).toBe('rejected');
  });

  it('L9, C1: the error names the history, and what a session has stored is not checked again', async () => {
    const agent = createAgent({ model: answering(), use: [denyList(['secret'])] });
    await expect(agent.call([user('a secret'), answer, user('fine')])).rejects.toThrow(
      "The guard 'denyList' rejected the history: it matches entry 1 of the list.",
    );
    const plain = createAgent({ model: answering() });
    const session = sessions(plain).open('s');
    await session.call('a secret');
    const guarded = sessions(agent, { memory: () => session.memory }).open('s');
    expect(await verdict(guarded.call('fine'))).toBe('accepted');
  });
});
