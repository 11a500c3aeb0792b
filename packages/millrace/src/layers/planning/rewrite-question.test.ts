import { describe, expect, it } from '@jest/globals';
import { lastValueFrom, map, NEVER, of, throwError } from 'rxjs';
import { createAgent, inProcessMemory, interruptOn, textOf, toolResults } from '../../index.js';
import { retrieve } from '../retrieval/index.js';
import {
  finish,
  marbles,
  record,
  type ScriptedAnswer,
  scriptedModel,
  text,
} from '../../testing/index.js';
import { rewriteQuestion } from './index.js';
import type { RewriteQuestionOptions } from './rewrite-question.js';
import { sessions } from '../sessions/index.js';

const sessionOf = (answers: readonly ScriptedAnswer[], options: RewriteQuestionOptions = {}) => {
  const asked: string[] = [];
  const memory = inProcessMemory();
  const model = scriptedModel(...answers);
  const retriever = {
    retrieve$: (query: { readonly text: string }) => {
      asked.push(query.text);
      return of([]);
    },
  };
  const use = [retrieve(retriever), rewriteQuestion(options)];
  const agent = createAgent({ model, use });
  return { session: sessions(agent, { memory }).open('s'), model, asked, memory };
};
const says = (words: string): ScriptedAnswer => [text(words)];

describe('rewriteQuestion', () => {
  it('G1: rewrites a question after more than three messages, and looks for that', async () => {
    const answers = ['1', '2', 'Where is the mill of Wye?', 'There.'].map(says);
    const { session, model, asked, memory } = sessionOf(answers);
    await session.call('Tell me of the mill.');
    await session.call('Of Wye.');
    const reply = await session.call('And where is it?');
    expect(asked).toEqual(['Tell me of the mill.', 'Of Wye.', 'Where is the mill of Wye?']);
    const [, , rewritten, answered] = model.requests;
    expect(rewritten?.system).toMatch(/^You are given a conversation/);
    expect(rewritten?.messages.map(textOf).join()).toMatch(
      /user:\n {2}Tell me of the mill\.[^]*The user's next message:\nuser:\n {2}And where is it\?/,
    );
    expect(answered?.messages.map(textOf).slice(-2)).toEqual([
      'And where is it?',
      '[Question]\nThe last question means: Where is the mill of Wye?',
    ]);
    expect(Object.keys(reply.usageByPhase)).toEqual(['rewriteQuestion', 'reasoning']);
    expect(reply.iterations).toBe(1);
    const stored = (await lastValueFrom(memory('s').load$())).map(textOf);
    expect(stored.slice(-2)).toEqual(['And where is it?', 'There.']);
  });

  it('G1: asks nothing of a short conversation, and takes what is understood as it is', async () => {
    const { session, model, asked } = sessionOf([says('1'), says('Again?'), says('2')], {
      above: 1,
    });
    await session.call('One');
    await session.call('Again?');
    expect(asked).toEqual(['One', 'Again?']);
    expect(model.requests.at(-1)?.messages.map(textOf)).toEqual(['One', '1', 'Again?']);
  });

  it('G1: a failure, or an essay, is a warning', async () => {
    for (const bad of [
      throwError(() => new Error('Down.')),
      says('x'.repeat(2_001)),
      [text('Where is the mill of the la'), finish('length')],
    ]) {
      const { session, asked } = sessionOf([says('1'), bad, says('2')], { above: 0 });
      await session.call('One');
      const events = await record(session.stream$('It?'));
      expect(events.filter(({ type }) => type === 'warning')).toMatchObject([
        { message: expect.stringContaining('The question is used unchanged') },
      ]);
      expect(asked).toEqual(['One', 'It?']);
    }
  });

  it('G1: another model may write it; what has no words is not asked about', async () => {
    const writer = scriptedModel(says('Which?'));
    const { session, asked } = sessionOf([says('1'), says('2')], {
      above: 0,
      model: writer,
      prompt: 'W',
    });
    await session.call('One');
    await session.call('It?');
    expect(asked).toEqual(['One', 'Which?']);
    expect(writer.requests).toMatchObject([{ system: 'W', maxTokens: 500 }]);
    await expect(session.call(toolResults({ no: 'x' }))).rejects.toMatchObject({
      code: 'invalidResume',
    });
    expect(() => rewriteQuestion({ above: -1 })).toThrow(/'above' must be/);
  });

  it('S1: an interrupt passes over it', () => {
    marbles(({ cold, scheduler, expectObservable }) => {
      const agent = createAgent({
        model: { name: 'm', stream$: () => NEVER },
        use: [rewriteQuestion({ above: 0 })],
      });
      const reason$ = sessions(agent, {
        memory: () => ({
          load$: () =>
            of([{ id: 'a', role: 'user', content: [{ type: 'text', text: 'One' }] } as const]),
          append$: () => of(undefined),
        }),
      })
        .open('s')
        .call$('It?', { scheduler, use: [interruptOn(cold('--x'))] })
        .pipe(map(({ reason }) => reason));
      expectObservable(reason$).toBe('--(r|)', { r: 'interrupted' });
    });
  });
});
