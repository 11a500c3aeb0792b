import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { concatMap, EMPTY, lastValueFrom, map, NEVER, of, toArray } from 'rxjs';
import {
  type Agent,
  createAgent,
  inProcessMemory,
  interruptOn,
  type Message,
  MillraceError,
  on,
  prepare,
  type Reply,
  suspend,
  text as textIn,
  textBlock,
  textOf,
  tool,
} from '../../index.js';
import {
  marbles,
  record,
  type ScriptedModel,
  scriptedModel,
  text,
  toolCall,
} from '../../testing/index.js';
import { asAgent, hub } from './index.js';
import { sessions } from '../sessions/index.js';

const script = (...says: readonly string[]) => scriptedModel(...says.map((it) => [text(it)]));
const named = (name: string, model: ScriptedModel) => createAgent({ name, model });

/** What a model has read with one request: who said it, and what. */
const heard = ({ requests }: ScriptedModel, index: number) =>
  (requests[index]?.messages ?? []).map(
    (it: Message) => `${it.role}${'name' in it ? ` ${it.name}` : ''}: ${textOf(it)}`,
  );
const said = (transcript: readonly Reply[]) => transcript.map((it) => `${it.name}: ${textOf(it)}`);

describe('hub', () => {
  it('G5: each hears what the others say, in the order in which it is said', async () => {
    const [a, b, c] = [script('a1', 'a2'), script('b1', 'b2'), script('c1', 'c2')];
    const agents = [named('a', a), named('b', b), named('c', c)] as const;
    const transcript = await lastValueFrom(of('?').pipe(hub({ agents, rounds: 2 })));
    expect(said(transcript)).toEqual(['a: a1', 'b: b1', 'c: c1', 'a: a2', 'b: b2', 'c: c2']);
    expect(Object.isFrozen(transcript)).toBe(true);
    expect(heard(a, 0)).toEqual(['user: ?']);
    expect(heard(b, 0)).toEqual(['user: ?', 'user a: a1']);
    expect(heard(c, 0)).toEqual(['user: ?', 'user a: a1', 'user b: b1']);
    expect(heard(a, 1)).toEqual(['user: ?', 'assistant a: a1', 'user b: b1', 'user c: c1']);
    expect(heard(b, 1)).toEqual([
      'user: ?',
      'user a: a1',
      'assistant b: b1',
      'user c: c1',
      'user a: a2',
    ]);
    expect(heard(c, 1).slice(3)).toEqual(['assistant c: c1', 'user a: a2', 'user b: b2']);
  });

  it('G5: the task of a turn is what is new, and all before it is history', async () => {
    const a = script('a1', 'a2');
    const agents = [named('a', a), named('b', script('b1', 'b2'))] as const;
    await lastValueFrom(of('?').pipe(hub({ agents, rounds: 2 })));
    const places = a.requests.map(({ messages }) =>
      messages.map(({ id }) => id.replace(/^.*?(history|input)/, '$1')),
    );
    expect(places).toEqual([['input/0'], ['history/0', 'history/1', 'input/0']]);
  });

  it('G5: takes any input, and the first to speak gets it as it is', async () => {
    const inputs = [
      [textBlock('blocks')],
      { role: 'user', name: 'ada', content: [textBlock('message')] },
      { role: 'assistant', name: 'a', content: [textBlock('reply')] },
      ['one', { role: 'assistant', name: 'x', content: [textBlock('two')] }],
    ] as const;
    const read = [];
    for (const input of inputs) {
      const [a, b] = [script('a1', 'a2'), script('b1', 'b2')];
      await lastValueFrom(
        of(input).pipe(hub({ agents: [named('a', a), named('b', b)], rounds: 2 })),
      );
      read.push([heard(a, 0), heard(b, 0).slice(0, -1), heard(a, 1).slice(0, -2)]);
    }
    const [blocks, message, reply, list] = [
      ['user: blocks'],
      ['user ada: message'],
      ['user a: reply'],
      ['user: one', 'user x: two'],
    ];
    const thrice = (it: unknown) => [it, it, it];
    expect(read).toEqual([blocks, message, reply, list].map(thrice));
  });

  it('G5: what cannot be read is an error of who is asked first', async () => {
    const empty$ = of('').pipe(hub({ agents: [named('a', script('x'))] }));
    await expect(lastValueFrom(empty$)).rejects.toMatchObject({ code: 'invalidRequest' });
  });

  it('G5: next chooses the speaker, by what was said, and can end it', async () => {
    const [a, b] = [script('a1', 'a2'), script('b1')];
    const [ada, bob] = [named('a', a), named('b', b)];
    const lengths: number[] = [];
    const order: readonly (Agent | undefined)[] = [bob, ada, ada, undefined];
    const transcript$ = of('?').pipe(
      hub({
        agents: [ada, bob],
        next: (transcript, input) => {
          expect(input).toBe('?');
          lengths.push(transcript.length);
          return order[transcript.length];
        },
      }),
    );
    expect(said(await lastValueFrom(transcript$))).toEqual(['b: b1', 'a: a1', 'a: a2']);
    expect(lengths).toEqual([0, 1, 2, 3]);
    expect(heard(a, 1)).toEqual([
      'user: ?',
      'user b: b1',
      'assistant a: a1',
      'user: No one else has replied. Continue.',
    ]);
  });

  it('G5: next may answer later, by its first value, or not at all', async () => {
    const agents = [named('a', script('a1', 'a2')), named('b', script('b1'))] as const;
    const [ada, bob] = agents;
    const later = [of(bob, ada), Promise.resolve(ada), EMPTY];
    const transcript$ = of('?').pipe(hub({ agents, next: ({ length }) => later[length] }));
    expect(said(await lastValueFrom(transcript$))).toEqual(['b: b1', 'a: a1']);
  });

  it('G5: a next that never ends is ended by maxTurns, by default 20', async () => {
    const turns = async (options: { maxTurns?: number }) => {
      const a = named('a', script(...Array.from({ length: 100 }, String)));
      const hub$ = of('?').pipe(hub({ agents: [a], next: () => a, ...options }));
      return (await lastValueFrom(hub$)).length;
    };
    expect(await turns({})).toBe(20);
    expect(await turns({ maxTurns: 3 })).toBe(3);
  });

  it('G5: turns of agents that answer immediately do not nest', async () => {
    const a = named('a', script(...Array.from({ length: 60 }, String)));
    const depths: number[] = [];
    const measured = hub({
      agents: [a],
      maxTurns: 60,
      next: () => {
        depths.push(new Error().stack?.split('\n').length ?? 0);
        return a;
      },
    });
    const limit = Error.stackTraceLimit;
    Error.stackTraceLimit = 5000;
    try {
      await lastValueFrom(of('?').pipe(measured));
    } finally {
      Error.stackTraceLimit = limit;
    }
    expect(depths).toHaveLength(60);
    expect(depths.at(-1)).toBe(depths[1]);
  });

  it('G5: a reply without words, or that was stopped, is passed over by the others', async () => {
    const [a, c] = [script('a1', 'a2'), script('c1')];
    const hollow = createAgent({
      name: 'hollow',
      model: script('x'),
      use: [on('postCall', map(silent))],
    });
    const stopped = createAgent({
      name: 'stopped',
      model: script('x'),
      use: [prepare(concatMap(() => EMPTY))],
    });
    const [ada, cid] = [named('a', a), named('c', c)];
    const order = [ada, hollow, stopped, cid, ada];
    const transcript = await lastValueFrom(
      of('?').pipe(
        hub({ agents: [ada, hollow, stopped, cid], next: ({ length }) => order[length] }),
      ),
    );
    expect(said(transcript)).toEqual(['a: a1', 'hollow:  ', 'stopped: Stopped.', 'c: c1', 'a: a2']);
    expect(heard(c, 0)).toEqual(['user: ?', 'user a: a1']);
    expect(heard(a, 1)).toEqual(['user: ?', 'assistant a: a1', 'user c: c1']);
  });

  it('G5: a turn in which one said nothing is a turn', async () => {
    const a = scriptedModel([text('a1')], [text('a2')]);
    const muted = createAgent({ name: 'a', model: a, use: [on('postCall', map(silent))] });
    await lastValueFrom(
      of('?').pipe(hub({ agents: [muted, named('b', script('b1', 'b2'))], rounds: 2 })),
    );
    expect(heard(a, 1)).toEqual(['user: ?', 'user b: b1']);
  });

  it('G5: a session as a participant remembers, and gets what is new', async () => {
    const a = script('a1', 'a2', 'a3');
    const memory = inProcessMemory();
    const session = sessions(createAgent({ name: 'inner', model: a }), { memory }).open('s');
    const ada = asAgent(session, { name: 'a' });
    const team = hub({ agents: [ada, named('b', script('b1', 'b2', 'b3'))], rounds: 2 });
    const transcript = await lastValueFrom(of('?').pipe(team));
    expect(said(transcript)).toEqual(['a: a1', 'b: b1', 'a: a2', 'b: b2']);
    expect(heard(a, 1)).toEqual(['user: ?', 'assistant inner: a1', 'user b: b1']);
    const stored = await lastValueFrom(memory('s').load$());
    expect(stored.map(textOf)).toEqual(['?', 'a1', 'b1', 'a2']);
  });

  it('G5: in a session, its agents hear what was said before', async () => {
    const [a, b] = [script('a1', 'a2'), script('b1', 'b2')];
    const team = asAgent(hub({ agents: [named('a', a), named('b', b)] }), { name: 'team' });
    const session = sessions(team).open('s');
    const reply = await session.call('q1');
    expect(textOf(reply)).toBe('a:\na1\n\nb:\nb1');
    await session.call('q2');
    expect(heard(b, 1)).toEqual([
      'user: q1',
      'user team: a:\na1\n\nb:\nb1',
      'user: q2',
      'user a: a2',
    ]);
  });

  it('H1: none speaks, and every call is below the one above', async () => {
    const agents = [named('a', script('a1')), named('b', script('b1'))] as const;
    const team = asAgent(hub({ agents }), { name: 'team' });
    const events = await record(team.stream$('?', { callId: 'c' }));
    expect(events.filter(({ speaks }) => speaks)).toEqual([]);
    expect(await lastValueFrom(of(...events).pipe(textIn(), toArray()))).toEqual([
      'a:\na1\n\nb:\nb1',
    ]);
    const begun = events.filter(({ type }) => type === 'preCall');
    expect(begun.map(({ agent, callId }) => `${callId} ${agent.join('/')}`)).toEqual([
      'c team',
      'c/step team/a',
      'c/step+2 team/b',
    ]);
  });

  it('G5, I5: leaving it ends who speaks in the same tick', () => {
    marbles(({ model, scheduler, expectObservable, expectSubscriptions }) => {
      const [a, b] = [model('--(tf|)'), model('-----')];
      const team = asAgent(
        hub({
          agents: [createAgent({ name: 'a', model: a }), createAgent({ name: 'b', model: b })],
        }),
      );
      expectObservable(team.call$('?', { scheduler }), '^---!').toBe('-----');
      expectSubscriptions(a.subscriptions[0] ?? []).toBe('^-!');
      expectSubscriptions(b.subscriptions[0] ?? []).toBe('--^-!');
    });
  });

  it('G5, I5: leaving it ends who decides, and the next input waits', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const a = named('a', script('1', '2'));
      const choice$ = cold('--a', { a });
      const turns = hub({ agents: [a], maxTurns: 1, next: () => choice$ });
      expectObservable(of('?').pipe(turns), '^!').toBe('--');
      expectObservable(
        of('?', '??').pipe(
          turns,
          map((it) => it.length),
        ),
      ).toBe('--1-(1|)', { 1: 1 });
      expectSubscriptions(choice$.subscriptions).toBe(['^!', '^-!', '--^-!']);
    });
  });

  it('G5: a next that never answers is cut with the call', () => {
    marbles(({ cold, scheduler, expectObservable }) => {
      const a = named('a', script());
      const team = asAgent(hub({ agents: [a], next: () => NEVER }), { name: 'team' });
      const reply$ = team
        .call$('?', { scheduler, use: [interruptOn(cold('--x', { x: 0 }))] })
        .pipe(map(({ reason }) => reason));
      expectObservable(reply$).toBe('--(r|)', { r: 'interrupted' });
    });
  });

  it('S1: an interrupt ends the speaker politely, and no other speaks', () => {
    marbles(({ model, cold, scheduler, expectObservable, expectSubscriptions }) => {
      const [a, b, c] = [model('-(tf|)'), model('-t---'), model('-t')];
      const agents = [
        createAgent({ name: 'a', model: a }),
        createAgent({ name: 'b', model: b }),
        createAgent({ name: 'c', model: c }),
      ] as const;
      const reply$ = asAgent(hub({ agents }), { name: 'team' })
        .call$('?', { scheduler, use: [interruptOn(cold('---x', { x: 0 }))] })
        .pipe(map((reply) => `${reply.reason} ${textOf(reply)}`));
      expectObservable(reply$).toBe('---(r|)', { r: 'interrupted a:\nt\n\nb:\nt' });
      expectSubscriptions(b.subscriptions[0] ?? []).toBe('-^-!');
      scheduler.schedule(() => expect(c.requests).toEqual([]), 5);
    });
  });

  it('S1: one who is interrupted ends the hub', () => {
    marbles(({ model, scheduler, expectObservable }) => {
      const b = script('b1');
      const session = sessions(createAgent({ name: 'a', model: model('-t---') })).open('s');
      const agents = [asAgent(session, { name: 'a' }), named('b', b)] as const;
      scheduler.schedule(() => session.interrupt(), 2);
      const transcript$ = of('?').pipe(hub({ agents }), map(said));
      expectObservable(transcript$).toBe('--(r|)', { r: ['a: t'] });
      scheduler.schedule(() => expect(b.requests).toEqual([]), 5);
    });
  });

  it('G5: an error of one is an error of the whole, and the others never begin', async () => {
    const c = script('c1');
    const agents = [named('a', script('a1')), named('b', script()), named('c', c)] as const;
    await expect(lastValueFrom(of('?').pipe(hub({ agents })))).rejects.toThrow('The script has 0');
    expect(c.requests).toEqual([]);
    const thrown = hub({
      agents,
      next: () => {
        throw new MillraceError('budget', 'spent');
      },
    });
    await expect(lastValueFrom(of('?').pipe(thrown))).rejects.toMatchObject({ code: 'budget' });
  });

  it('T13: one that waits for a result is an error that names it', async () => {
    const pay = tool({ name: 'pay', description: 'Pays.', run: () => suspend({ amount: 5 }) });
    const a = createAgent({ name: 'a', model: scriptedModel([toolCall('pay')]), tools: [pay] });
    await expect(lastValueFrom(of('?').pipe(hub({ agents: [a] })))).rejects.toMatchObject({
      code: 'invalidState',
      message:
        "hub(): the agent 'a' waits for an external tool result, which cannot be provided here. Give it tools that do not suspend.",
    });
  });

  it('I4: what one does with tools is not for the others, nor for its own history', async () => {
    const look = tool({ name: 'look', description: 'Looks.', run: () => 'seen' });
    const a = scriptedModel([text('I look. '), toolCall('look')], [text('a1')], [text('a2')]);
    const b = script('b1', 'b2');
    const agents = [createAgent({ name: 'a', model: a, tools: [look] }), named('b', b)] as const;
    await lastValueFrom(of('?').pipe(hub({ agents, rounds: 2 })));
    expect(heard(b, 0)).toEqual(['user: ?', 'user a: a1']);
    expect(heard(a, 2)).toEqual(['user: ?', 'assistant a: a1', 'user b: b1']);
  });

  it.each(['__proto__', 'constructor', 'a/b', 'x\ny: z', '', ' '])(
    'G5: takes %j for a name like any other',
    async (name) => {
      const [a, b] = [script('a1', 'a2'), script('b1', 'b2')];
      await lastValueFrom(
        of('?').pipe(hub({ agents: [named(name, a), named('b', b)], rounds: 2 })),
      );
      expect(heard(b, 0)).toEqual(['user: ?', `user ${name}: a1`]);
      expect(heard(a, 1)).toEqual(['user: ?', `assistant ${name}: a1`, 'user b: b1']);
    },
  );

  it('G5: for any speakers, times and words, each hears all that the others have said, once, in order', () => {
    const order = fc.array(fc.record({ who: fc.nat(3), isMute: fc.boolean() }), { maxLength: 12 });
    return fc.assert(
      fc.asyncProperty(order, async (turns) => {
        const models = [0, 1, 2, 3].map((who) =>
          scriptedModel(
            ...turns.flatMap((turn, at) => (turn.who === who ? [[text(`${at}`)]] : [])),
          ),
        );
        const agents = models.map((model, who) =>
          createAgent({
            name: `${who}`,
            model,
            use: [
              on(
                'postCall',
                map((it) => (turns[Number(textOf(it.reply))]?.isMute === true ? silent(it) : it)),
              ),
            ],
          }),
        );
        const next = ({ length }: readonly Reply[]) => agents[turns[length]?.who ?? -1];
        const team = hub({ agents: agents as [Agent, ...Agent[]], next });
        const transcript = await lastValueFrom(of('?').pipe(team));
        expect(transcript.map(({ name }) => name)).toEqual(turns.map(({ who }) => `${who}`));
        const nth = [0, 0, 0, 0];
        turns.forEach(({ who }, at) => {
          const before = turns.slice(0, at).flatMap((turn, index) => {
            const role = turn.who === who ? 'assistant' : 'user';
            return turn.isMute ? [] : [`${role} ${turn.who}: ${index}`];
          });
          const index = nth[who] ?? 0;
          nth[who] = index + 1;
          const read = heard(models[who] ?? script(), index);
          expect(read.filter((it) => !it.includes('Continue.'))).toEqual(['user: ?', ...before]);
        });
      }),
      { numRuns: 40 },
    );
  });

  it('refuses what cannot take part, and names that are given twice', () => {
    const a = named('a', script());
    const wrong = (options: unknown) => () => hub(options as never);
    expect(wrong(undefined)).toThrow('hub() takes an object of options');
    expect(wrong({})).toThrow("hub() needs 'agents'");
    expect(wrong({ agents: [] })).toThrow("hub() needs at least 1 of 'agents'.");
    expect(wrong({ agents: [a, named('a', script())] })).toThrow(
      "hub(): more than one agent is called 'a'. Give each a unique 'name'",
    );
    expect(wrong({ agents: [a, a] })).toThrow('more than one agent');
    expect(wrong({ agents: [a, sessions(a).open('s')] })).toThrow(
      "hub(): entry 2 of 'agents' is not an agent. Turn other steps and sessions into one: asAgent(step, { name: 'writer' }).",
    );
    expect(wrong({ agents: ['a'] })).toThrow('entry 1');
    expect(wrong({ agents: [a], rounds: 0 })).toThrow("'rounds' must be a whole number");
    expect(wrong({ agents: [a], maxTurns: 3 })).toThrow("'maxTurns' requires 'next'");
    expect(wrong({ agents: [a], rounds: 2, next: () => a })).toThrow("'rounds' cannot be combined");
    expect(wrong({ agents: [a], order: [] })).toThrow("has no option 'order'");
  });

  it.each<readonly [string, unknown]>([
    ['another agent', named('b', script('b1'))],
    ['a name', 'a'],
    ['a stream of something else', of(5)],
  ])('refuses %s that next has chosen', async (_what, chosen) => {
    const chosen$ = of('?').pipe(
      hub({ agents: [named('a', script('a1'))], next: () => chosen as never }),
    );
    await expect(lastValueFrom(chosen$)).rejects.toMatchObject({
      code: 'config',
      message: "hub(): 'next' must return one of its 'agents'.",
    });
  });
});

const silent = <Event extends { readonly reply: Reply }>(event: Event): Event => ({
  ...event,
  reply: { ...event.reply, content: [textBlock(' ')] },
});
