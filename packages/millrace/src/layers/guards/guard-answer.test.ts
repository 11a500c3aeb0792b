import { describe, expect, it } from '@jest/globals';
import { EMPTY, firstValueFrom, map, of, throwError } from 'rxjs';
import { interruptOn } from '../interrupt-on.js';
import { createAgent } from '../../agent.js';
import { MillraceError } from '../../values/errors.js';
import { on } from '../../seams/interceptor.js';
import { textBlock, textOf } from '../../values/message.js';
import { marbles, record, scriptedModel, text, toolCall } from '../../testing/index.js';
import { tool } from '../../tools/tool.js';
import { toolOutput } from '../../values/tool-output.js';
import { guardAnswer } from './guard-answer.js';
import { sessions } from '../sessions/index.js';

const clock = tool({ name: 'clock', description: 'Tells the time.', run: () => '12:00' });
const polite = ({ text: said }: { readonly text: string }) => ({
  allowed: !said.includes('rude'),
  reason: 'it is impolite',
});

/** The error of a guard, whether or not the seam wraps it. */
const rejection = async (call: Promise<unknown>): Promise<unknown> => {
  const error: unknown = await call.catch((thrown: unknown) => thrown);
  if (!(error instanceof MillraceError)) throw new Error('It has not failed.');
  return error.code === 'guardRejected' ? error : error.cause;
};

describe('guardAnswer', () => {
  it('C1: an answer that is refused fails the call, is not stored, and the session continues', async () => {
    const model = scriptedModel([text('A rude word.')], [text('Fine.')]);
    const session = sessions(createAgent({ model, use: [guardAnswer(polite)] })).open('s');
    expect(await rejection(session.call('?'))).toMatchObject({
      code: 'guardRejected',
      message: "The guard 'guardAnswer' rejected the answer: it is impolite.",
    });
    const stored = await firstValueFrom(session.memory.load$());
    expect(JSON.stringify(stored)).not.toContain('rude');
    expect(textOf(await session.call('?'))).toBe('Fine.');
  });

  it('C7: the call errors with the very error of the guard', async () => {
    const model = scriptedModel([text('A rude word.')]);
    const agent = createAgent({ model, use: [guardAnswer(polite, { userMessage: 'Sorry.' })] });
    await expect(agent.call('?')).rejects.toMatchObject({
      code: 'guardRejected',
      userMessage: 'Sorry.',
    });
  });

  it.each<readonly [string, () => unknown]>([
    [
      'a throw',
      () => {
        throw new Error('down');
      },
    ],
    ['an error', () => throwError(() => new Error('down'))],
    ['nothing', () => EMPTY],
  ])('C1: fails closed at %s', async (_, check) => {
    for (const onReject of ['error', 'again'] as const) {
      const model = scriptedModel([text('Fine.')]);
      const interceptors = [guardAnswer(check as never, { onReject })];
      expect(await rejection(createAgent({ model, use: interceptors }).call('?'))).toMatchObject({
        code: 'guardRejected',
        message: expect.stringContaining('could not check the answer'),
      });
    }
  });

  it('L7: the model is asked again, with the reason, and interfaces take the message back', async () => {
    const model = scriptedModel([text('A rude word.')], [text('Fine.')]);
    const seen: string[] = [];
    const guard = guardAnswer(
      (said) => {
        seen.push(said.text);
        return polite(said);
      },
      { onReject: 'again' },
    );
    const session = sessions(createAgent({ model, use: [guard] })).open('s');
    const events = await record(session.stream$('?'));
    expect(events.filter(({ type }) => type === 'messageDiscarded')).toHaveLength(1);
    expect(events.at(-1)).toMatchObject({ type: 'postCall', reply: { iterations: 2 } });
    expect(model.requests[1]?.messages.map(textOf)).toEqual([
      '?',
      'A rude word.',
      'Your answer was not accepted: it is impolite. Answer differently.',
    ]);
    expect(JSON.stringify(await firstValueFrom(session.memory.load$()))).not.toContain('rude');
    // What was accepted is not asked of twice.
    expect(seen).toEqual(['A rude word.', 'Fine.']);
  });

  it('L7: after so many in a row the call errors; a good one in between begins again', async () => {
    const rude = [text('A rude word.')];
    const interceptors = [guardAnswer(polite, { onReject: 'again', feedback: 'Be kind.' })];
    const model = scriptedModel(rude, rude, rude, [text('Never asked.')]);
    expect(await rejection(createAgent({ model, use: interceptors }).call('?'))).toMatchObject({
      code: 'guardRejected',
      message: expect.stringContaining('it is impolite'),
    });
    expect(model.requests).toHaveLength(3);
    expect(model.requests[2]?.messages.at(-1)).toMatchObject({ content: [{ text: 'Be kind.' }] });
    const never = guardAnswer(polite, { onReject: 'again', retries: 0 });
    const once = scriptedModel(rude);
    await rejection(createAgent({ model: once, use: [never] }).call('?'));
    expect(once.requests).toHaveLength(1);
    const next = scriptedModel(rude, rude, [text('1')], rude, rude, [text('2')]);
    const agent = createAgent({ model: next, use: interceptors });
    expect([textOf(await agent.call('?')), textOf(await agent.call('?'))]).toEqual(['1', '2']);
  });

  it('C1: what is said beside tools is let through; the answer is not', async () => {
    const script = [[text('A rude aside.'), toolCall('clock')], [text('A rude answer.')]];
    for (const onReject of ['error', 'again'] as const) {
      const model = scriptedModel(...script, [text('Fine.')]);
      const interceptors = [guardAnswer(polite, { onReject })];
      const call = createAgent({ model, tools: [clock], use: interceptors }).call('?');
      if (onReject === 'again') expect(textOf(await call)).toBe('Fine.');
      else expect(await rejection(call)).toMatchObject({ code: 'guardRejected' });
      expect(model.requests).toHaveLength(onReject === 'again' ? 3 : 2);
    }
  });

  it.each(['error', 'again'] as const)(
    'C1: nothing gets around it: closing answers, answers of tools, edits, partial text (%s)',
    async (onReject) => {
      const interceptors = [guardAnswer(polite, { onReject })];
      const answer = tool({
        name: 'answer',
        description: 'Answers.',
        run: () => toolOutput({ content: 'A rude word.', finalAnswer: true }),
      });
      const closing = scriptedModel([toolCall('clock')], [text('A rude word.')]);
      const byTool = scriptedModel([toolCall('answer')]);
      const edit = on(
        'postCall',
        map((event) => ({
          ...event,
          reply: { ...event.reply, content: [textBlock('A rude word.')] },
        })),
      );
      const calls = [
        createAgent({ model: closing, tools: [clock], use: interceptors }).call('?', {
          limits: { maxIterations: 1 },
        }),
        createAgent({ model: byTool, tools: [answer], use: interceptors }).call('?'),
        createAgent({ model: scriptedModel([text('Fine.')]), use: [...interceptors, edit] }).call(
          '?',
        ),
        createAgent({ model: scriptedModel(), use: interceptors }).call('?', {
          use: [interruptOn(of('A rude word.'))],
        }),
      ];
      for (const call of calls) {
        expect(await rejection(call)).toMatchObject({ code: 'guardRejected' });
      }
    },
  );

  it('I5: leaving the call leaves the check in the same tick', () => {
    marbles(({ model, cold, expectObservable, expectSubscriptions, scheduler }) => {
      for (const onReject of ['error', 'again'] as const) {
        const verdict$ = cold<boolean>('-----(t|)', { t: true });
        const interceptors = [guardAnswer(() => verdict$, { onReject })];
        const agent = createAgent({ model: model('(tf|)'), use: interceptors });
        expectObservable(agent.call$('?', { scheduler }), '^--!').toBe('----');
        expectSubscriptions(verdict$.subscriptions).toBe('^--!');
      }
    });
  });

  it('C1: refuses what cannot be', () => {
    const wrong = (options: object) => () => guardAnswer(() => true, options);
    expect(wrong({ onReject: 'pass' })).toThrow("'onReject' must be 'error' or 'again'");
    expect(wrong({ retries: -1 })).toThrow('a whole number of at least 0');
    expect(wrong({ failOpen: true })).toThrow("no option 'failOpen'");
    expect(() => guardAnswer(5 as never)).toThrow('takes a function that returns true');
  });
});
