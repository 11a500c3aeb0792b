import { describe, expect, it } from '@jest/globals';
import { catchError, concatMap, EMPTY, ignoreElements, merge, tap, timer } from 'rxjs';
import { type Agent, type AgentOptions, createAgent, isMillraceError } from '../../index.js';
import { text, toolCall } from '../../testing/index.js';
import { callId, called, resumed, type SetUp, written } from './lives.test-support.js';
import { follow, outcomeOf } from './outcome.test-support.js';
import { createWorld, live, type Process, type World } from './process.test-support.js';
import { options, said } from './set-ups.test-support.js';
import { sessions } from '../../layers/sessions/index.js';

const agentOf = (process: Process, more: Partial<AgentOptions> = {}): Agent =>
  createAgent({
    ...options(process),
    instructions: 'Pay.',
    model: process.model((request) =>
      said(request) === 0 ? [text('First '), toolCall('pay', { to: 'ann' })] : [text('Paid.')],
    ),
    tools: [process.effect('pay', { ms: 4 })],
    ...more,
  });

const setUp: SetUp = { agent: agentOf };

/** How many records there are up to a step. */
const upTo = async (step: string): Promise<number> => {
  const world = createWorld();
  await called(world, setUp);
  const found = (await written(world)).find(({ name }) => name === `${callId}/${step}`);
  return found?.position ?? 0;
};

/** As a process left it that ended when so many records were written. */
const leftAt = async (records: number): Promise<World> => {
  const world = createWorld();
  await called(world, setUp, { how: 'killed', records });
  return world;
};

describe('a call that was cut', () => {
  it('S7: is resumed by one of two processes that try it at the same time, for any agents', async () => {
    const last = await upTo('2');
    for (let records = 1; records < last; records += 1) {
      for (const isSame of [true, false]) {
        const world = await leftAt(records);
        const ends: string[] = [];
        await live(world, undefined, (process) => {
          const one = agentOf(process);
          const other = isSame ? one : agentOf(process);
          return merge(
            ...[one, other].map((agent) =>
              process.durable
                .resumeStream$(sessions(agent, { memory: process.memory }).open('s'), callId, {
                  scheduler: process.scheduler,
                })
                .pipe(
                  tap({ complete: () => ends.push('done') }),
                  catchError((error: unknown) => {
                    ends.push(isMillraceError(error) ? error.code : String(error));
                    return EMPTY;
                  }),
                ),
            ),
          );
        });
        expect([records, ends]).toEqual([records, ['conflict', 'done']]);
        expect(new Set(world.effects).size).toBe(1);
      }
    }
  });

  it('S7, S8: is followed across a drain at any time and the resume after it, each event once', async () => {
    const undisturbed = createWorld();
    const whole = await outcomeOf(undisturbed, await called(undisturbed, setUp));
    const drained = new Set<unknown>();
    for (let ms = 0; ms < 14; ms += 1) {
      const world = createWorld();
      const reader = follow(world);
      const life = await live(world, undefined, (process) => {
        const { scheduler } = process;
        const agent = agentOf(process);
        const drain$ = timer(ms, scheduler).pipe(
          concatMap(() => process.durable.drain$({ scheduler })),
        );
        return merge(
          sessions(agent, { memory: process.memory })
            .open('s')
            .stream$('Go on.', { callId, scheduler }),
          drain$.pipe(ignoreElements()),
        );
      });
      const outcome = await outcomeOf(world, await resumed(world, setUp));
      reader.leave();
      drained.add(isMillraceError(life.error) ? life.error.code : life.events.at(-1)?.type);
      expect([ms, outcome.reply]).toEqual([ms, whole.reply]);
      expect([outcome.effects, outcome.uncertain]).toEqual([whole.effects, []]);
      expect(outcome.messages).toEqual(whole.messages);
      expect(reader.seen.map(({ seq }) => seq)).toEqual(outcome.numbers);
      expect(reader.seen.at(-1)?.type).toBe('postCall');
    }
    expect(drained).toEqual(new Set(['aborted', 'postCall']));
  });

  it('S6: continues with the instructions and the model that the agent has now', async () => {
    const world = await leftAt(await upTo('1/0'));
    const asked: unknown[] = [];
    const { events } = await live(world, undefined, (process) =>
      process.durable.resumeStream$(
        sessions(
          agentOf(process, {
            instructions: 'Never pay.',
            model: process.model(({ system }) => {
              asked.push(system);
              return [text('Another one.')];
            }),
          }),
        ).open('s'),
        callId,
        { scheduler: process.scheduler },
      ),
    );
    expect(asked).toEqual(['Never pay.']);
    expect(events.at(-1)).toMatchObject({ reply: { content: [{ text: 'Another one.' }] } });
  });

  it('S6: reports to the model that a tool no longer exists, and keeps what it returned before', async () => {
    const last = async (step: string) => {
      const world = await leftAt(await upTo(step));
      const { events } = await live(world, undefined, (process) =>
        process.durable.resumeStream$(sessions(agentOf(process, { tools: [] })).open('s'), callId, {
          scheduler: process.scheduler,
        }),
      );
      const end = events.at(-1);
      return end?.type === 'postCall' ? end.reply.toolCalls.map(({ output }) => output) : end;
    };
    expect(await last('1/0')).toEqual(['pay ann.']);
    expect(await last('1')).toEqual([expect.stringContaining('pay')]);
  });
});
