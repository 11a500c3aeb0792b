import { describe, expect, it } from '@jest/globals';
import { concatMap, lastValueFrom, tap } from 'rxjs';
import { contextKey, createAgent, type Layer, on, output, textOf, tool } from '../index.js';
import { insertBefore, phase, reasoning } from '../phases/index.js';
import { jsonSchema } from '../schema/index.js';
import { sessions } from '../layers/sessions/index.js';
import { finish, record, scriptedModel, text, toolCall } from '../testing/index.js';
import { answerWith } from './index.js';

declare module '../values/reply.js' {
  interface CallLabels {
    readonly tenant?: string;
  }
}

const user = contextKey<string>('user');

/** Each part of a layer, as one that shows that it acts. */
const parts: Readonly<Record<string, (seen: (what: string) => void) => Layer>> = {
  labels: () => ({ name: 'part', labels: { tenant: 'acme' } }),
  context: () => ({ name: 'part', context: [user.of('ada')] }),
  record: (seen) => ({ name: 'part', record: () => tap({ subscribe: () => seen('record') }) }),
  call: (seen) => ({
    name: 'part',
    call: () => (next) => (call) => {
      seen('call');
      return next(call);
    },
  }),
  step: (seen) => ({
    name: 'part',
    step: () => (next) => (step) => {
      if (step.kind === 'model') seen('step');
      return next(step);
    },
  }),
  model: (seen) => ({
    name: 'part',
    model: () => (next) => {
      seen('model');
      return next;
    },
  }),
  turn: (seen) =>
    insertBefore(reasoning, () =>
      phase((run) => {
        seen('turn');
        return run;
      }),
    ),
  on: (seen) => ({
    name: 'part',
    on: [
      on(
        'preCall',
        tap(() => seen('on')),
      ),
    ],
  }),
};

const places = ['agent', 'with', 'call', 'session', 'session with', 'call of a session'] as const;
type Place = (typeof places)[number];

/** What the part of a layer shows in a call, if the layer is in this place. */
const shownBy = async (part: string, place: Place): Promise<readonly string[]> => {
  const shown = new Set<string>();
  const layer = parts[part]?.((what) => shown.add(what)) as Layer;
  const who = tool({
    name: 'who',
    description: 'Returns the user.',
    run: (_input, context) => {
      if (context.tenant === 'acme') shown.add('labels');
      if (context.get(user) === 'ada') shown.add('context');
      return 'Known.';
    },
  });
  const model = scriptedModel([toolCall('who')], [text('Done.')]);
  const given = { model, tools: [who], context: [user.of('nobody')] };
  const plain = createAgent(
    place === 'agent' || place === 'session' ? { ...given, use: [layer] } : given,
  );
  const agent = place === 'with' ? plain.with(layer) : plain;
  const session = sessions(agent).open('s');
  const inSession = place === 'session with' ? session.with(layer) : session;
  const asked = place.includes('session') ? inSession : agent;
  await asked.call('Who?', place.startsWith('call') ? { use: [layer] } : {});
  return [...shown];
};

describe('the parts of a layer', () => {
  it.each(Object.keys(parts).flatMap((part) => places.map((place) => [part, place] as const)))(
    'Y6: %s acts if the layer is given to: %s',
    async (part, place) => {
      expect(await shownBy(part, place)).toContain(part);
    },
  );

  it('Y6: of two with one name that are `single`, only the later one gives labels and context values', async () => {
    const other = contextKey<string>('other');
    const first: Layer = {
      name: 'part',
      single: true,
      labels: { tenant: 'acme' },
      context: [user.of('first'), other.of('first')],
    };
    const second: Layer = { name: 'part', single: true, context: [user.of('second')] };
    const seen: unknown[] = [];
    const who = tool({
      name: 'who',
      description: 'Returns the user.',
      run: (_input, context) => {
        seen.push(context.get(user), context.tenant);
        return context.get(other);
      },
    });
    const model = scriptedModel([toolCall('who')]);
    const agent = createAgent({ model, tools: [who], use: [first] });
    await expect(agent.call('Who?', { use: [second] })).rejects.toMatchObject({ code: 'config' });
    expect(seen).toEqual(['second', undefined]);
  });

  it('Y6: values of a call override those of its layers, and these override those of the agent', async () => {
    const seen: string[] = [];
    const who = tool({
      name: 'who',
      description: 'Returns the user.',
      run: (_input, context) => {
        seen.push(context.get(user));
        return 'Known.';
      },
    });
    const answers = () => scriptedModel([toolCall('who')], [text('Done.')]);
    const layer: Layer = { name: 'part', context: [user.of('layer')] };
    const agent = (use: readonly Layer[]) =>
      createAgent({ model: answers(), tools: [who], use, context: [user.of('agent')] });
    await agent([]).call('?');
    await agent([layer]).call('?');
    await agent([]).call('?', { use: [layer] });
    await agent([layer]).call('?', { context: [user.of('call')] });
    expect(seen).toEqual(['agent', 'layer', 'layer', 'call']);
  });
});

describe('an answer of a layer after that of the loop', () => {
  const clock = tool({ name: 'clock', description: 'Returns the time.', run: () => '12:00' });
  const usage = { type: 'usage', usage: { inputTokens: 10, outputTokens: 5 } } as const;
  const answers = () =>
    scriptedModel([toolCall('clock'), usage, finish()], [text('Noon.'), usage, finish()]);
  const closing: Layer = {
    name: 'closing',
    call: (context) => (next) => (call) =>
      next(call).pipe(concatMap(() => answerWith(context, call, 'It is noon.'))),
  };

  it('Y6: keeps its turns, tool calls and usage, and its answer is discarded', async () => {
    const agent = createAgent({ model: answers(), tools: [clock], use: [closing] });
    const events = await record(agent.stream$('What time is it?', { callId: 'c' }));
    const discarded = events.filter(({ type }) => type === 'messageDiscarded');
    expect(discarded).toMatchObject([{ messageId: 'c/2' }]);
    const last = events.at(-1);
    const { reply } = last?.type === 'postCall' ? last : { reply: undefined };
    expect([reply?.text, reply?.iterations, reply?.toolCalls.length]).toEqual([
      'It is noon.',
      2,
      1,
    ]);
    expect(reply?.usage).toMatchObject({ inputTokens: 20, outputTokens: 10 });
  });

  it('Y6: the conversation has the tool call, and the answer of the layer', async () => {
    const open = sessions(createAgent({ model: answers(), tools: [clock], use: [closing] }));
    const session = open.open('s');
    await session.call('What time is it?');
    const stored = await lastValueFrom(session.memory.load$());
    expect(stored.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
    expect(stored.map(textOf).at(-1)).toBe('It is noon.');
  });

  it('Y6: reads its output again', async () => {
    const schema = jsonSchema({
      type: 'object',
      properties: { time: { type: 'string' } },
      required: ['time'],
    });
    const model = scriptedModel([text('{"time":"11:00"}')]);
    const layer: Layer = {
      name: 'closing',
      call: (context) => (next) => (call) =>
        next(call).pipe(concatMap(() => answerWith(context, call, '{"time":"12:00"}'))),
    };
    const agent = createAgent({ model, use: [output(schema), layer] });
    expect((await agent.call('What time is it?')).output).toEqual({ time: '12:00' });
  });
});
