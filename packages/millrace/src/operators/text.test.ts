import { describe, expect, it } from '@jest/globals';
import { connect, firstValueFrom, forkJoin, map, takeLast, toArray } from 'rxjs';
import { answerWith } from '../call/index.js';
import {
  type AgentOptions,
  createAgent,
  type Layer,
  on,
  textBlock,
  textOf,
  tool,
  toolOutput,
} from '../index.js';
import { marbles, scriptedModel, text as says, thinking, toolCall } from '../testing/index.js';
import { delta, postCall, structural } from './events.test-support.js';
import { replies, text, textSoFar } from './event-operators.js';

const end = tool({
  name: 'end',
  description: 'Ends.',
  run: () => toolOutput({ content: 'From the tool.', finalAnswer: true }),
});
const cached: Layer = {
  name: 'cached',
  call: (context) => () => (call) => answerWith(context, call, 'Cached.'),
};
const editing = (edit: (text: string) => string) =>
  on(
    'postCall',
    map(({ reply, ...event }) => ({
      ...event,
      reply: { ...reply, content: [textBlock(edit(textOf(reply)))] },
    })),
  );
const stopping = on(
  'postReasoning',
  map((event) => ({ ...event, stop: true })),
);
const { type: _type, ...place } = structural('');
const discarded = {
  ...place,
  type: 'messageDiscarded' as const,
  messageId: 'c/1',
  why: 'Again.',
};

describe('text', () => {
  it('H1: emits the text deltas of root calls, and of sub-agents if they are wanted', () => {
    const events = {
      a: delta('a'),
      t: delta('t', { kind: 'thinking' }),
      i: delta('i', { kind: 'toolInput', toolCall: { index: 0, id: 'u', name: 'n' } }),
      s: delta('s', { root: 'c', call: 'c/1' }),
      z: delta('z', { type: 'summaryChunk' }),
      p: postCall('p'),
    };
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const event$ = cold('a-tis-zp|', events);
      expectObservable(event$.pipe(text())).toBe('a-----zp|');
      expectObservable(event$.pipe(text({ subAgents: true }))).toBe('a---s-zp|');
      expectSubscriptions(event$.subscriptions).toBe(['^-------!', '^-------!', '^--!']);
      const failing$ = cold('a#', events);
      expectObservable(failing$.pipe(text())).toBe('a#');
      expectObservable(event$.pipe(text()), '^--!').toBe('a---');
    });
  });

  it('H1, I9: joined, it is what the reply says', async () => {
    const helper = createAgent({ name: 'helper', model: scriptedModel([says('Aside.')]) });
    const ask = tool({
      name: 'ask',
      description: 'Asks.',
      run: (_input, parent) => helper.call$('?', { parent }).pipe(map(textOf)),
    });
    const agent = createAgent({
      model: scriptedModel([toolCall('ask')], [thinking('Hm.'), says('It '), says('is.')]),
      tools: [ask],
    });
    expect(await firstValueFrom(agent.stream$('?').pipe(text(), toArray()))).toEqual([
      'It ',
      'is.',
    ]);
  });

  it.each<[string, AgentOptions, readonly string[]]>([
    [
      'the final answer of a tool',
      { model: scriptedModel([says('Look. '), toolCall('end')]), tools: [end] },
      ['Look. ', 'From the tool.'],
    ],
    ['an answer of a layer', { model: scriptedModel(), use: [cached] }, ['Cached.']],
    [
      'a reply that was edited',
      { model: scriptedModel([says('My card '), says('is 4111.')]), use: [editing(() => 'No.')] },
      ['My card ', 'is 4111.', 'No.'],
    ],
    [
      'a reply that was added to',
      { model: scriptedModel([says('Yes.')]), use: [editing((it) => `${it} Ada`)] },
      ['Yes.', ' Ada'],
    ],
    [
      'what was said before a stop, once',
      { model: scriptedModel([says('I will.'), toolCall('end')]), tools: [end], use: [stopping] },
      ['I will.'],
    ],
  ])('I9, L10: has %s', async (_, options, said) => {
    const seen = await firstValueFrom(
      createAgent(options)
        .stream$('?')
        .pipe(
          connect((event$) =>
            forkJoin({
              deltas: event$.pipe(text(), toArray()),
              soFar: event$.pipe(textSoFar(), takeLast(1)),
              reply: event$.pipe(replies(), map(textOf)),
            }),
          ),
        ),
    );
    expect(seen.deltas).toEqual(said);
    expect(seen.soFar).toBe(seen.reply);
  });

  it('I4: textSoFar() starts over with each message, and takes back what is discarded', () => {
    const events = {
      a: delta('He', { message: 'c/1' }),
      b: delta('llo', { message: 'c/1' }),
      d: discarded,
      e: delta('Hi', { message: 'c/1~2' }),
      p: postCall('Hi!'),
    };
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const event$ = cold('ab-d-ep|', events);
      const values = { a: 'He', b: 'Hello', d: '', e: 'Hi', p: 'Hi!' };
      expectObservable(event$.pipe(textSoFar())).toBe('ab-d-ep|', values);
      expectSubscriptions(event$.subscriptions).toBe('^------!');
    });
  });

  it('refuses unknown options', () => {
    expect(() => text({ all: true } as never)).toThrow("text() has no option 'all'.");
    expect(() => text({ subAgents: 1 } as never)).toThrow(
      "text(): 'subAgents' must be true or false",
    );
  });
});
