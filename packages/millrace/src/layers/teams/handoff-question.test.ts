import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { lastValueFrom, of, Subject } from 'rxjs';
import { type Agent, createAgent, type Layer, textOf, tool } from '../../index.js';
import { record, type ScriptedModel, scriptedModel, text, toolCall } from '../../testing/index.js';
import { fitContext } from '../fitting/index.js';
import { denyList, guardInput } from '../guards/index.js';
import { inProcessLongTermMemory, withLongTermMemory } from '../long-term-memory/index.js';
import { retrieve } from '../retrieval/index.js';
import { selectTools } from '../select-tools.js';
import { sessions } from '../sessions/index.js';
import { asAgent, handoff } from './index.js';

const member = (agent: Agent) => ({ agent, description: `Is ${agent.name}.` });

/** An agent that keeps what it takes for the question of the user. */
const reader = (name: string, model: ScriptedModel, use: readonly Layer[] = []) => {
  const asked = new Set<string>();
  const memory = inProcessLongTermMemory();
  const read = (words: string) => asked.add(words.replace(/\s+/g, ' '));
  const watching: readonly Layer[] = [
    retrieve({ retrieve$: ({ text: query }) => (read(query), of([])) }),
    selectTools({ select: ({ text: query }) => (read(query), ['look']) }),
    guardInput(({ text: query }) => (read(query), true)),
  ].flat();
  const tools = [tool({ name: 'look', description: 'Looks.', run: () => 'seen' })];
  const options = { name, model, tools, use: [...watching, ...use] };
  const recall$: typeof memory.recall$ = (_, query) => (read(query.text), of([]));
  return {
    asked,
    agent: createAgent(withLongTermMemory(options, { memory: { ...memory, recall$ } })),
  };
};

const window = fitContext({ contextWindow: 4_000, reserve: 200 });

/** An agent that calls a tool once for each output, and hands over. */
const front = (outputs: readonly string[], next: string, words: string) => {
  const left = [...outputs];
  const fetch = tool({ name: 'fetch', description: 'Fetches.', run: () => left.shift() ?? '' });
  const turns = outputs.map(() => [text(words), toolCall('fetch')]);
  const model = scriptedModel(...turns, [toolCall(`transfer_to_${next}`, { reason: words })]);
  return createAgent({
    name: 'front',
    model,
    tools: [fetch],
    use: window,
    limits: { maxIterations: 20 },
  });
};

const metadata = { userId: 'u' };

describe('the question of the next agent of a handoff', () => {
  it('G5, C2: is that of the user, and fits after any results and words', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom(0, 10, 3_000, 15_000, 40_000), { minLength: 1, maxLength: 6 }),
        fc.constantFrom(1, 300, 3_000),
        fc.constantFrom('?', 'word '.repeat(500).trim()),
        async (sizes, said, question) => {
          const model = scriptedModel([text('Done.')]);
          const { agent, asked } = reader('back', model, window);
          const agents = [
            front(
              sizes.map((size) => 'seen '.repeat(size / 5)),
              'back',
              'so '.repeat(said),
            ),
            agent,
          ].map(member);
          const reply = await handoff({ agents }).call(question, { metadata });
          expect([reply.name, reply.text]).toEqual(['back', 'Done.']);
          expect([...asked]).toEqual([question]);
          const ids =
            model.requests[0]?.messages.map(({ id }) => id.replace(/^.*(?=input|given)/, '')) ?? [];
          expect(ids.filter((id) => id.startsWith('input'))).toHaveLength(1);
        },
      ),
      { numRuns: 40 },
    );
  }, 60_000);

  it('G5, C2: what it reads of a handoff is whole if there is room, and the oldest is left out first', async () => {
    const seenWith = async (contextWindow: number) => {
      const model = scriptedModel([text('Done.')]);
      const use = [fitContext({ contextWindow, reserve: 100 })];
      const agents = [
        front(['seen '.repeat(600)], 'back', 'Hm.'),
        createAgent({ name: 'back', model, use }),
      ];
      await handoff({ agents: agents.map(member) }).call('Q');
      return (model.requests[0]?.messages ?? []).map((it) => textOf(it).slice(0, 16));
    };
    expect(await seenWith(100_000)).toEqual(['Q', 'Hm.', 'Tools that I cal', 'I am handing ove']);
    expect(await seenWith(700)).toEqual([
      expect.stringMatching(/^\[2 earlier/),
      'I am handing ove',
    ]);
  });

  it('G5, S3: is that of the user and what the user adds, also in teams within teams', async () => {
    const door = new Subject<string>();
    const wait = tool({ name: 'wait', description: 'Waits.', run: () => door });
    const desk = createAgent({
      name: 'desk',
      model: scriptedModel([text('One moment.'), toolCall('wait')], [toolCall('transfer_to_team')]),
      tools: [wait],
    });
    const model = scriptedModel([text('Done.')]);
    const { agent, asked } = reader('back', model);
    const team = handoff({
      name: 'team',
      agents: [front(['a page'], 'wrapped', 'Hm.'), asAgent(agent, { name: 'wrapped' })].map(
        member,
      ),
    });
    const session = sessions(handoff({ agents: [desk, team].map(member) })).open('s');
    const replied = session.call('Charged twice!', { metadata });
    const byCard = {
      role: 'user',
      id: 'given/c/1',
      content: [{ type: 'text', text: 'By card.' }],
    } as const;
    const steered = lastValueFrom(session.steer$(['In May.', byCard]));
    door.next('done');
    door.complete();
    expect(await steered).toMatchObject({ status: 'delivered' });
    expect((await replied).text).toBe('Done.');
    expect([...asked]).toEqual(['Charged twice! In May. By card.']);
    expect(model.requests[0]?.messages.map(textOf).join('\n')).toContain('> a page');
  });

  it('G5, C1: no id that a client gives keeps a message from the guards', async () => {
    const evil = {
      role: 'user',
      id: 'given/c/1',
      content: [{ type: 'text', text: 'A secret.' }],
    } as const;
    const model = scriptedModel();
    const guarded = createAgent({ name: 'a', model, use: [denyList(['secret'])] });
    const teams = [handoff({ agents: [member(guarded)] }), asAgent(guarded, { name: 'team' })];
    for (const agent of [guarded, ...teams]) {
      // A client may know the id of the call: its own, or that of its request.
      for (const callId of ['c', 'd']) {
        const events$ = agent.stream$(['Hi', evil], { callId });
        const events = await record(events$).catch((error: unknown) => error);
        expect(JSON.stringify(events)).toContain('guardRejected');
      }
    }
    expect(model.requests).toEqual([]);
  });
});
