import { describe, expect, it } from '@jest/globals';
import { lastValueFrom, map, of, toArray } from 'rxjs';
import {
  createAgent,
  inProcessMemory,
  interruptOn,
  type Message,
  output,
  parallel,
  sequential,
  text as textIn,
  textOf,
} from '../../index.js';
import { jsonSchema } from '../../schema/index.js';
import { marbles, record, type ScriptedModel, scriptedModel, text } from '../../testing/index.js';
import { noUsage } from '../../values/usage.js';
import { asAgent, debate } from './index.js';
import { sessions } from '../sessions/index.js';

const script = (...says: readonly string[]) => scriptedModel(...says.map((it) => [text(it)]));
const named = (name: string, model: ScriptedModel) => createAgent({ name, model });

/** What a model has read with one request: who said it, and what. */
const heard = ({ requests }: ScriptedModel, index: number) =>
  (requests[index]?.messages ?? []).map(
    (it: Message) => `${it.role}${'name' in it ? ` ${it.name}` : ''}: ${textOf(it)}`,
  );

const twoSides = () => {
  const [pro, con] = [script('p1', 'p2', 'p3', 'p4'), script('c1', 'c2', 'c3', 'c4')];
  return { pro, con, agents: [named('pro', pro), named('con', con)] as const };
};

describe('debate', () => {
  it('G5: the sides speak in turn, and the judge gets the question and all they said', async () => {
    const { pro, con, agents } = twoSides();
    const verdict = script('pro wins');
    const reply = await lastValueFrom(
      of('?').pipe(debate({ agents, judge: named('judge', verdict) })),
    );
    expect([reply.name, textOf(reply)]).toEqual(['judge', 'pro wins']);
    expect(heard(pro, 1)).toEqual(['user: ?', 'assistant pro: p1', 'user con: c1']);
    expect(heard(con, 1)).toEqual(['user: ?', 'user pro: p1', 'assistant con: c1', 'user pro: p2']);
    expect(heard(verdict, 0)).toEqual([
      'user: ?',
      'user pro: p1',
      'user con: c1',
      'user pro: p2',
      'user con: c2',
    ]);
  });

  it('R3: keeps the output of the judge', async () => {
    const schema = {
      type: 'object',
      properties: { winner: { type: 'string', enum: ['pro', 'con'] } },
      required: ['winner'],
    } as const;
    const judge = createAgent({
      name: 'judge',
      model: script('{"winner":"con"}'),
      use: [output(jsonSchema(schema))],
    });
    const { agents } = twoSides();
    const reply = await asAgent(debate({ agents, rounds: 1, judge })).call('?');
    const winner: 'pro' | 'con' | undefined = reply.output?.winner;
    expect(winner).toBe('con');
  });

  it('G5: in a session, all hear what was said before, and only the judge is remembered', async () => {
    const { pro, agents } = twoSides();
    const [verdict, memory] = [script('v1', 'v2'), inProcessMemory()];
    const team = asAgent(debate({ agents, rounds: 1, judge: named('judge', verdict) }), {
      name: 'team',
    });
    const session = sessions(team, { memory }).open('s');
    await session.call('q1');
    const reply = await session.call('q2');
    expect([reply.name, reply.reason, textOf(reply)]).toEqual(['judge', 'answer', 'v2']);
    expect(heard(pro, 1)).toEqual(['user: q1', 'user judge: v1', 'user: q2']);
    expect(heard(verdict, 1)).toEqual([
      'user: q1',
      'assistant judge: v1',
      'user: q2',
      'user pro: p2',
      'user con: c2',
    ]);
    expect((await lastValueFrom(memory('s').load$())).map(textOf)).toEqual([
      'q1',
      'v1',
      'q2',
      'v2',
    ]);
  });

  it('H1, I9: the judge speaks, and no other agent', async () => {
    const { agents } = twoSides();
    const team = asAgent(debate({ agents, rounds: 1, judge: named('judge', script('v1')) }), {
      name: 'team',
    });
    const events = await record(team.stream$('?'));
    const speaking = events.filter(({ speaks }) => speaks).map(({ agent }) => agent.join('/'));
    expect([...new Set(speaking)]).toEqual(['team/judge']);
    expect(await lastValueFrom(of(...events).pipe(textIn(), toArray()))).toEqual(['v1']);
  });

  it('R4: what all of them have cost is what the reply has cost', async () => {
    const costs = { type: 'usage', usage: { ...noUsage, inputTokens: 10 } } as const;
    const costly = (name: string) =>
      createAgent({ name, model: scriptedModel([text(name), costs], [text(name), costs]) });
    const [pro, con, judge] = [costly('pro'), costly('con'), costly('judge')];
    const reply = await asAgent(debate({ agents: [pro, con], judge })).call('?');
    expect(reply.usage.inputTokens).toBe(50);
  });

  it('H1: inside of a step that does not speak, the judge does not either', async () => {
    const { agents } = twoSides();
    const inner = debate({ agents, rounds: 1, judge: named('judge', script('v1')) });
    const team = asAgent(parallel(inner, named('x', script('x'))), { name: 'team' });
    const events = await record(team.stream$('?'));
    expect(events.filter(({ speaks }) => speaks)).toEqual([]);
  });

  it('G5: until ends it between two rounds, and never within one', async () => {
    const seen: number[] = [];
    const run = async (enough: (said: number) => unknown) => {
      seen.length = 0;
      const { pro, agents } = twoSides();
      const until = (transcript: readonly unknown[], input: unknown) => {
        seen.push(transcript.length);
        expect(input).toBe('?');
        return enough(transcript.length) as boolean;
      };
      const judge = named('judge', script('v'));
      await lastValueFrom(of('?').pipe(debate({ agents, rounds: 3, judge, until })));
      return pro.requests.length;
    };
    expect(await run((said) => said === 2)).toBe(1);
    expect(seen).toEqual([2]);
    expect(await run((said) => of(said === 4, false))).toBe(2);
    expect(await run(() => Promise.resolve(false))).toBe(3);
    // Behind the last round there is nothing to decide.
    expect(seen).toEqual([2, 4]);
    expect(await run(() => of())).toBe(3);
  });

  it('G5, I5: leaving it ends who speaks in the same tick, the judge too', () => {
    marbles(({ model, scheduler, expectObservable, expectSubscriptions }) => {
      const [pro, con, judge] = [
        model(['-(tf|)', '-(tf|)']),
        model(['--(tf|)', '--(tf|)']),
        model(['-----', '--(tf|)']),
      ];
      const team = asAgent(
        debate({
          agents: [
            createAgent({ name: 'pro', model: pro }),
            createAgent({ name: 'con', model: con }),
          ],
          rounds: 1,
          judge: createAgent({ name: 'judge', model: judge }),
        }),
      );
      expectObservable(team.call$('?', { scheduler }), '^---!').toBe('-----');
      expectSubscriptions(pro.subscriptions[0] ?? []).toBe('^!');
      expectSubscriptions(con.subscriptions[0] ?? []).toBe('-^-!');
      expectSubscriptions(judge.subscriptions[0] ?? []).toBe('---^!');
    });
  });

  it('S1: an interrupt while a side speaks asks no further agent', () => {
    marbles(({ model, cold, scheduler, expectObservable }) => {
      const judge = script('v');
      const [pro, con] = [model('-t---'), model('-t---')];
      const team = asAgent(
        debate({
          agents: [
            createAgent({ name: 'pro', model: pro }),
            createAgent({ name: 'con', model: con }),
          ],
          judge: named('judge', judge),
        }),
        { name: 'team' },
      );
      const reply$ = team
        .call$('?', { scheduler, use: [interruptOn(cold('--x', { x: 0 }))] })
        .pipe(map((reply) => `${reply.reason} ${textOf(reply)}`));
      expectObservable(reply$).toBe('--(r|)', { r: 'interrupted Interrupted.' });
      scheduler.schedule(() => expect([con.requests, judge.requests]).toEqual([[], []]), 5);
    });
  });

  it('S1: an interrupt while the judge speaks leaves what it has said', () => {
    marbles(({ model, cold, scheduler, expectObservable }) => {
      const { agents } = twoSides();
      const judge = createAgent({ name: 'judge', model: model('-t---') });
      const reply$ = asAgent(debate({ agents, judge }), { name: 'team' })
        .call$('?', { scheduler, use: [interruptOn(cold('--x', { x: 0 }))] })
        .pipe(map((reply) => `${reply.reason} ${reply.name} ${textOf(reply)}`));
      expectObservable(reply$).toBe('--(r|)', { r: 'interrupted judge t' });
    });
  });

  it('S1: a side that is interrupted ends it early, and the judge decides on what there is', () => {
    marbles(({ model, scheduler, expectObservable }) => {
      const [con, verdict] = [script('c1', 'c2'), script('v')];
      const session = sessions(createAgent({ name: 'pro', model: model('-t---') })).open('s');
      const pro = asAgent(session, { name: 'pro' });
      scheduler.schedule(() => session.interrupt(), 2);
      const judged$ = of('?').pipe(
        debate({ agents: [named('con', con), pro], judge: named('judge', verdict) }),
        map(textOf),
      );
      expectObservable(judged$).toBe('--(v|)', { v: 'v' });
      scheduler.schedule(() => {
        expect(heard(verdict, 0)).toEqual(['user: ?', 'user con: c1']);
        expect(con.requests).toHaveLength(1);
      }, 5);
    });
  });

  it('G5: an error of one is an error of the whole, and the judge is not asked', async () => {
    const verdict = script('v');
    const agents = [named('pro', script('p')), named('con', script())] as const;
    const judged$ = of('?').pipe(debate({ agents, judge: named('judge', verdict) }));
    await expect(lastValueFrom(judged$)).rejects.toThrow('The script has 0 answers');
    expect(verdict.requests).toEqual([]);
  });

  it('G5: any step may judge, also a session, which remembers', async () => {
    const verdict = script('v1', 'v2');
    const { agents } = twoSides();
    const judge = sequential(sessions(named('judge', verdict)).open('s'));
    const judged$ = of('q1', 'q2').pipe(
      debate({ agents, rounds: 1, judge }),
      map(textOf),
      toArray(),
    );
    expect(await lastValueFrom(judged$)).toEqual(['v1', 'v2']);
    expect(heard(verdict, 1)).toEqual([
      'user: q1',
      'user pro: p1',
      'user con: c1',
      'assistant judge: v1',
      'user: q2',
      'user pro: p2',
      'user con: c2',
    ]);
  });

  it('refuses one side, a judge that is a side, and what is no judge', () => {
    const [pro, con] = twoSides().agents;
    const wrong = (options: unknown) => () => debate(options as never);
    expect(wrong({ agents: [pro], judge: con })).toThrow("debate() needs at least 2 of 'agents'.");
    expect(wrong({ agents: [pro, con], judge: pro })).toThrow(
      "debate(): more than one agent is called 'pro'.",
    );
    expect(wrong({ agents: [pro, con], judge: 'pro' })).toThrow(
      "debate(): 'judge' must be an agent, a session or another step",
    );
    expect(wrong({ agents: [pro, con] })).toThrow("debate() needs 'judge'");
    expect(wrong({ agents: [pro, con], judge: named('j', script()), next: 5 })).toThrow(
      "has no option 'next'",
    );
    expect(wrong({ agents: [pro, 'x'], judge: named('j', script()) })).toThrow(
      "debate(): entry 2 of 'agents' is not an agent.",
    );
  });
});
