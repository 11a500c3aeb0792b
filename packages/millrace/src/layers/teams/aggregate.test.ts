import { describe, expect, it } from '@jest/globals';
import { lastValueFrom, map, mergeMap, of, toArray } from 'rxjs';
import {
  createAgent,
  type Input,
  output,
  parallel,
  race,
  sequential,
  text as textIn,
  textOf,
} from '../../index.js';
import { jsonSchema } from '../../schema/index.js';
import { marbles, record, scriptedModel, text } from '../../testing/index.js';
import { aggregate, asAgent, hub } from './index.js';

const saying = (name: string, ...says: readonly string[]) =>
  createAgent({ name, model: scriptedModel(...says.map((it) => [text(it)])) });

describe('aggregate', () => {
  it('G5: makes one answer of the replies of a parallel', async () => {
    const step = aggregate(parallel(saying('a', 'Yes.'), saying('b', 'No.')), ([a, b]) =>
      [a, b].map(textOf).join(' '),
    );
    expect(await lastValueFrom(of('?').pipe(step))).toBe('Yes. No.');
  });

  it('G5: is a step of others, and a reply that it picks is the answer with its output', async () => {
    const schema = { type: 'object', properties: { points: { type: 'number' } } } as const;
    const judged = (name: string, points: number) =>
      createAgent({
        name,
        use: [output(jsonSchema(schema))],
        model: scriptedModel([text(JSON.stringify({ points }))]),
      });
    const best = aggregate(parallel(judged('a', 3), judged('b', 8), judged('c', 5)), (replies) =>
      replies.reduce((one, other) =>
        (other.output?.points ?? 0) > (one.output?.points ?? 0) ? other : one,
      ),
    );
    const reply = await asAgent(sequential(saying('first', '?'), best), { name: 'team' }).call('?');
    const points: number | undefined = reply.output?.points;
    expect([reply.name, points]).toEqual(['b', 8]);
  });

  it('G5: takes the transcript of a hub', async () => {
    const agents = [saying('a', 'a1'), saying('b', 'b1')] as const;
    const last = aggregate(hub({ agents }), (transcript) => transcript.at(-1) ?? 'Silence.');
    expect(textOf(await asAgent(last).call('?'))).toBe('b1');
  });

  it('G5: takes each emission of a step', async () => {
    const twice = mergeMap((input: Input) => of(input, input));
    const marked = aggregate(twice, (input) => (typeof input === 'string' ? `${input}!` : '?'));
    expect(await lastValueFrom(of('a', 'b').pipe(marked, toArray()))).toEqual([
      'a!',
      'a!',
      'b!',
      'b!',
    ]);
  });

  it('H1: its calls are below the one above, and none of them speaks', async () => {
    const step = aggregate(sequential(saying('a', 'word')), (reply) => textOf(reply).toUpperCase());
    const events = await record(asAgent(step, { name: 'team' }).stream$('?'));
    expect(events.filter(({ speaks }) => speaks)).toEqual([]);
    expect(await lastValueFrom(of(...events).pipe(textIn(), toArray()))).toEqual(['WORD']);
    const begun = events.filter(({ type }) => type === 'preCall');
    expect(begun.map(({ agent }) => agent.join('/'))).toEqual(['team', 'team/a']);
    const last = events.at(-1);
    expect(last?.type === 'postCall' && textOf(last.reply)).toBe('WORD');
  });

  it('G5: RxJS does it too if there is no call above', async () => {
    const both$ = of('?').pipe(
      parallel(saying('a', 'Yes.'), saying('b', 'No.')),
      map(([a, b]) => `${textOf(a)} ${textOf(b)}`),
    );
    expect(await lastValueFrom(both$)).toBe('Yes. No.');
  });

  it('G5: and an agent does it: a list of replies is an input', async () => {
    const model = scriptedModel([text('Perhaps.')]);
    const judge = createAgent({ name: 'judge', model });
    const team = asAgent(sequential(parallel(saying('a', 'Yes.'), saying('b', 'No.')), judge));
    expect(textOf(await team.call('?'))).toBe('Perhaps.');
    expect(model.requests[0]?.messages).toMatchObject([
      { role: 'user', name: 'a', content: [text('Yes.')] },
      { role: 'user', name: 'b', content: [text('No.')] },
    ]);
  });

  it('G5, I5: leaving it leaves what is in it in the same tick', () => {
    marbles(({ model, scheduler, expectObservable, expectSubscriptions }) => {
      const [slow, quick] = [model('-----'), model('--(tf|)')];
      const step = aggregate(
        parallel(
          createAgent({ name: 'slow', model: slow }),
          createAgent({ name: 'quick', model: quick }),
        ),
        () => 'both',
      );
      expectObservable(asAgent(step).call$('?', { scheduler }), '^--!').toBe('----');
      expectSubscriptions(slow.subscriptions[0] ?? []).toBe('^--!');
      expectSubscriptions(quick.subscriptions[0] ?? []).toBe('^-!');
    });
  });

  it('G5: what its function throws is an error of the whole', async () => {
    const broken = aggregate(race(saying('a', 'A')), (): string => {
      throw new Error('oops');
    });
    await expect(lastValueFrom(of('?').pipe(broken))).rejects.toThrow('oops');
    await expect(asAgent(broken, { name: 'n' }).call('?')).rejects.toThrow();
  });

  it('refuses what is no step, and what is no function', () => {
    expect(() => aggregate('x' as never, () => 'x')).toThrow('aggregate() needs a step');
    expect(() => aggregate(saying('a'), 'x' as never)).toThrow('aggregate() needs a function');
  });
});
