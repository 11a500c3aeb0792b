import { describe, expect, it } from '@jest/globals';
import {
  defer,
  lastValueFrom,
  map,
  NEVER,
  type Observable,
  Subject,
  throwError,
  toArray,
} from 'rxjs';
import { createAgent } from '../../agent.js';
import {
  type CallStoreDriver,
  createCallStore,
  inProcessCalls,
  journal,
} from '../../journal/index.js';
import { inProcessMemory } from '../../memories/in-process-memory.js';
import { suspend } from '../../memories/suspend.js';
import type { ModelChunk } from '../../models/model.js';
import { finish, type ScriptedAnswer, scriptedModel, text, toolCall } from '../../testing/index.js';
import { tool } from '../../tools/tool.js';
import { toolGroup } from '../../tools/tool-group.js';
import type { MillraceError } from '../../values/errors.js';
import { textOf } from '../../values/message.js';
import { inProcessSessions } from './in-process-sessions.js';
import type { SessionState } from './session-state.js';
import { keepSessions } from './keep-sessions.js';
import { sessions } from './index.js';

const spent = (inputTokens: number): ModelChunk => ({ type: 'usage', usage: { inputTokens } });

/** An answer that comes when it is let. */
const later = (...chunks: readonly ModelChunk[]) => {
  const answer$ = new Subject<ModelChunk>();
  const come = (): void => {
    [...chunks, finish()].forEach((chunk) => answer$.next(chunk));
    answer$.complete();
  };
  return { answer$: answer$ as Observable<ModelChunk>, come };
};

/** Processes that answer the session `s`, each with its own agent. */
const place = () => {
  const [driver, store] = [inProcessCalls(), inProcessSessions()];
  const groups = ['web', 'mail'].map((name) =>
    toolGroup({ name, description: `The ${name}.`, tools: [] }),
  );
  const processOn = (driver: CallStoreDriver, answers: readonly ScriptedAnswer[]) => {
    const calls = journal(createCallStore(driver));
    const look = tool({ name: 'look', description: 'Looks.', run: () => 'Seen.' });
    const ask = tool({ name: 'ask', description: 'Asks.', run: () => suspend({ form: 1 }) });
    const agent = createAgent({
      model: scriptedModel(...answers),
      tools: [look, ask, ...groups],
      use: [calls],
    });
    return keepSessions(agent, store, { journal: calls });
  };
  const process = (...answers: readonly ScriptedAnswer[]) => processOn(driver, answers);
  /** A process that can end: what it would write then is lost. */
  const dying = (...answers: readonly ScriptedAnswer[]) => {
    let isDead = false;
    const claim$: CallStoreDriver['claim$'] = (callId) =>
      driver.claim$(callId).pipe(
        map(({ append$ }) => ({
          append$: (batch) =>
            defer(() => (isDead ? throwError(() => new Error('dead')) : append$(batch))),
        })),
      );
    return { kept: processOn({ ...driver, claim$ }, answers), die: () => void (isDead = true) };
  };
  const stored = async () => (await lastValueFrom(store.load$('s')))?.state as SessionState;
  const lines = async () => {
    const { messages, branches = [] } = await stored();
    return {
      head: messages.map(({ id }) => id),
      branches: branches.map(({ after, message }) => [after, message.id]),
    };
  };
  return { driver, store, process, dying, stored, lines };
};

const resumed = async (kept: ReturnType<ReturnType<typeof place>['process']>) => {
  const session = await kept.open('s');
  const replies = await lastValueFrom(session.resume$().pipe(toArray()));
  return { session, said: replies.map(textOf) };
};

const failureOf = async (call: Promise<unknown>): Promise<MillraceError> =>
  call.then(
    () => {
      throw new Error('It did not fail.');
    },
    (error: unknown) => error as MillraceError,
  );

describe('S6: a call whose session another process has saved meanwhile', () => {
  it('is named, and found by a resume, as a branch at its beginning', async () => {
    const { process, lines, stored } = place();
    const slow = later(text('slow'), spent(10));
    const [one, two] = [
      process([text('first'), spent(1)], slow.answer$),
      process([text('fast'), spent(100)]),
    ];
    const lost = await one.open('s');
    await lost.call('?', { callId: 'a' });
    const other = await two.open('s');
    const call = failureOf(lost.call('?', { callId: 'b' }));
    other.rename('Two');
    await other.call('?', { callId: 'c' });
    slow.come();
    const error = await call;
    expect([error.code, error.message]).toEqual([
      'conflict',
      "The call 'b' ended, but another process has saved the session 's' meanwhile. Do not repeat it: open the session again and call resume(), which adds it to the conversation.",
    ]);
    expect(error.userMessage).toBe(
      'Your request was completed, but the conversation was changed elsewhere meanwhile. Load it again.',
    );
    await lost.close();
    const { said } = await resumed(one);
    expect(said).toEqual(['slow']);
    expect(await lines()).toEqual({
      head: ['a/input/0', 'a/1', 'c/input/0', 'c/1'],
      branches: [
        ['a/1', 'b/input/0'],
        ['b/input/0', 'b/1'],
      ],
    });
    expect(await stored()).toMatchObject({
      title: 'Two',
      usage: { inputTokens: 111 },
      lastCall: { callId: 'c', usageBefore: { inputTokens: 11 } },
      earlierCalls: [{ callId: 'a' }, { callId: 'b', hasEnded: true }],
    });
    // Everyone else finds it there.
    expect((await resumed(process())).said).toEqual([]);
  });

  it.each<[string, readonly ScriptedAnswer[], readonly string[]]>([
    ['suspended', [[toolCall('ask', {}, 'q')]], ['b/input/0', 'b/1', 'b/1/results']],
    ['used tools', [[toolCall('look')], [text('ok')]], ['b/input/0', 'b/1', 'b/1/results', 'b/2']],
    [
      'failed',
      [[toolCall('look')], throwError(() => new Error('no'))],
      ['b/input/0', 'b/1', 'b/1/results'],
    ],
    ['was stopped', [() => NEVER], ['b/input/0', 'b/interrupted']],
  ])('is found also if it %s', async (how, answers, messages) => {
    const { process, lines } = place();
    const kept = process(...answers);
    const lost = await kept.open('s');
    const other = await process([text('fast')]).open('s');
    if (how === 'was stopped') {
      const call = failureOf(lost.call('?', { callId: 'b' }));
      await other.call('?', { callId: 'c' });
      lost.interrupt();
      expect((await call).message).toContain("The call 'b' ended");
    } else {
      await other.call('?', { callId: 'c' });
      await failureOf(lost.call('?', { callId: 'b' }));
    }
    await lost.close();
    await resumed(kept);
    const { head, branches } = await lines();
    expect(head).toEqual(['c/input/0', 'c/1']);
    expect(branches.map(([, id]) => id)).toEqual(messages);
    expect((await resumed(kept)).said).toEqual([]);
  });

  it('takes results of a suspended call on its branch', async () => {
    const { process, lines } = place();
    const kept = process([toolCall('ask', {}, 'q')], [text('thanks')]);
    const lost = await kept.open('s');
    await (await process([text('fast')]).open('s')).call('?', { callId: 'c' });
    await failureOf(lost.call('?', { callId: 'b' }));
    const { session } = await resumed(kept);
    const { suspensions = [] } = (await session.resume('b')) ?? {};
    const [toolCallId = ''] = suspensions.map(({ toolCall: { id } }) => id);
    const content = [{ type: 'text', text: 'Yes.' }] as const;
    const result = { type: 'tool_result', toolCallId, content, isError: false } as const;
    const reply = await session.call([{ id: 'r', role: 'tool', content: [result] }], {
      after: 'b',
      callId: 'd',
    });
    expect(reply.text).toBe('thanks');
    expect((await lines()).head).toEqual(['c/input/0', 'c/1']);
  });

  it('names all that are lacking, and finds them in their order, one after the other', async () => {
    const { process, lines } = place();
    const slow = later(text('one'));
    const kept = process(slow.answer$, [text('two')]);
    const lost = await kept.open('s');
    await (await process([text('fast')]).open('s')).call('?', { callId: 'c' });
    const first = failureOf(lost.call('?', { callId: 'b1' }));
    const second = failureOf(lost.call('?', { callId: 'b2', onBusy: 'queue' }));
    slow.come();
    expect((await first).message).toContain("The call 'b1' ended, but another process");
    expect((await second).message).toContain("The calls 'b1', 'b2' ended, but another process");
    expect((await failureOf(lost.call('?'))).message).toContain('Open it again to continue');
    expect((await resumed(kept)).said).toEqual(['one', 'two']);
    expect((await lines()).branches).toEqual([
      [null, 'b1/input/0'],
      ['b1/input/0', 'b1/1'],
      ['b1/1', 'b2/input/0'],
      ['b2/input/0', 'b2/1'],
    ]);
  });

  it('is continued if its process ended, though others have continued', async () => {
    const { process, lines, dying } = place();
    const crashed = dying([toolCall('look')], () => NEVER);
    const lost = await crashed.kept.open('s');
    const asked = lost.call$('?', { callId: 'b' }).subscribe({ error: () => undefined });
    await (await process([text('fast')]).open('s')).call('?', { callId: 'c' });
    crashed.die();
    asked.unsubscribe();
    const kept = process([text('late')]);
    expect((await resumed(kept)).said).toEqual(['late']);
    expect(await lines()).toEqual({
      head: ['c/input/0', 'c/1'],
      branches: [
        [null, 'b/input/0'],
        ['b/input/0', 'b/1'],
        ['b/1', 'b/1/results'],
        ['b/1/results', 'b/2'],
      ],
    });
  });

  it('is left to its process while that runs it', async () => {
    const { process, lines } = place();
    const slow = later(text('slow'));
    const one = process(slow.answer$);
    const running = await one.open('s');
    const call = failureOf(running.call('?', { callId: 'b' }));
    const two = process([text('fast')]);
    const { session, said } = await resumed(two);
    expect(said).toEqual([]);
    await session.call('?', { callId: 'c' });
    expect(await session.resume()).toBeUndefined();
    slow.come();
    await call;
    expect((await resumed(one)).said).toEqual(['slow']);
    expect((await lines()).head).toEqual(['c/input/0', 'c/1']);
  });

  it('leaves the rest of the state to the calls that are in it', async () => {
    const { process, stored } = place();
    const activate = (name: string) => toolCall('manage_tools', { activate: [name] });
    const slow = later(text('one'), spent(1));
    const kept = process([activate('web')], slow.answer$);
    const lost = failureOf((await kept.open('s')).call('?', { callId: 'b' }));
    const other = await process([activate('mail')], () => NEVER).open('s');
    const stopped = other.call('?', { callId: 'c' });
    other.interrupt();
    await stopped;
    slow.come();
    await lost;
    const before = await stored();
    await resumed(kept);
    expect(await stored()).toMatchObject({
      messages: before.messages,
      groups: { web: false, mail: true },
      interrupted: true,
      usage: { inputTokens: 1 },
      lastCall: { callId: 'c' },
    });
  });

  it('adds the groups of a call that began later to those of the others', async () => {
    const { process, stored } = place();
    const activate = (name: string) => toolCall('manage_tools', { activate: [name] });
    const other = await process([activate('mail')], [text('one')]).open('s');
    const kept = process([activate('web')], [text('two')]);
    const lost = await kept.open('s');
    await other.call('?', { callId: 'c' });
    await failureOf(lost.call('?', { callId: 'b' }));
    await resumed(kept);
    expect(await stored()).toMatchObject({
      groups: { web: true, mail: true },
      lastCall: { callId: 'b', hasEnded: true },
    });
  });

  it('does not take the head from a conversation that has continued', async () => {
    const { process, lines } = place();
    const kept = process([text('one')], [text('again')]);
    const lost = await kept.open('s');
    await lost.call('?', { callId: 'a' });
    await (await process([text('fast')]).open('s')).call('?', { callId: 'c' });
    const place1 = { after: null, replaces: 'a/input/0' };
    await failureOf(lost.call('?', { callId: 'b', ...place1 }));
    await resumed(kept);
    expect(await lines()).toEqual({
      head: ['a/input/0', 'a/1', 'c/input/0', 'c/1'],
      branches: [
        [null, 'b/input/0'],
        ['b/input/0', 'b/1'],
      ],
    });
  });

  it('is found if the state knows only that it began', async () => {
    const { process, lines } = place();
    const slow = later(text('slow'));
    const kept = process([text('one')], slow.answer$, [text('quick')]);
    const lost = await kept.open('s');
    await lost.call('?', { callId: 'a' });
    const call = failureOf(lost.call('?', { callId: 'b', after: 'a' }));
    await lost.call('?', { callId: 'q', after: null });
    await (await process([text('fast')]).open('s')).call('?', { callId: 'c' });
    slow.come();
    await call;
    expect((await resumed(kept)).said).toEqual(['slow']);
    const { head, branches } = await lines();
    expect(head).toEqual(['a/input/0', 'a/1', 'c/input/0', 'c/1']);
    expect(branches).toContainEqual(['a/1', 'b/input/0']);
  });

  it('is reported once if it cannot be resumed, and does not keep others from it', async () => {
    const { process, dying, lines } = place();
    const crashed = dying(() => NEVER);
    const lost = await crashed.kept.open('s');
    const own = {
      callId: 'b',
      tools: [tool({ name: 'own', description: 'Own.', run: () => 'x' })],
    };
    const asked = lost.call$('?', own).subscribe({ error: () => undefined });
    const kept = process([text('two')]);
    const other = await kept.open('s');
    await (await process([text('fast')]).open('s')).call('?', { callId: 'c' });
    crashed.die();
    asked.unsubscribe();
    await failureOf(other.call('?', { callId: 'd' }));
    expect((await failureOf(resumed(kept))).message).toContain("with its own 'tools'");
    expect((await resumed(process())).said).toEqual(['two']);
    expect((await lines()).head).toEqual(['c/input/0', 'c/1']);
    const last = await process([text('done')]).open('s');
    expect(textOf((await last.resume('b', { tools: own.tools })) ?? { content: [] })).toBe('done');
  });

  it('says how to continue without a call, and begins again in a removed conversation', async () => {
    const { driver, store, process, lines } = place();
    const kept = process([text('one')], [text('two')]);
    const session = await kept.open('s');
    await session.call('?', { callId: 'a' });
    await lastValueFrom(store.remove$('s'));
    await lastValueFrom(driver.remove$('a'));
    session.rename('New');
    const error = await failureOf(session.save());
    expect([error.message, error.userMessage]).toEqual([
      "The session is not saved: another process has saved the session 's' meanwhile. Open it again to continue with its current state.",
      'The conversation has changed. Load it again.',
    ]);
    const again = await kept.open('s');
    expect(await again.resume()).toBeUndefined();
    expect([again.title, (await again.saveState()).messages]).toEqual([undefined, []]);
    await again.call('?', { callId: 'b' });
    expect((await lines()).head).toEqual(['b/input/0', 'b/1']);
  });
});

describe('S6: calls that a session has left for good', () => {
  it.each(['cleared', 'removed'])('stay away if their messages were %s', async (how) => {
    const { process, lines } = place();
    const kept = process([text('one')], [text('two')], [text('three')]);
    const session = await kept.open('s');
    await session.call('?', { callId: 'a' });
    await session.call('?', { callId: 'b' });
    if (how === 'cleared') await session.clear();
    else await lastValueFrom(session.memory.remove$?.('a/input/0') ?? NEVER, { defaultValue: 0 });
    await session.call('?', { callId: 'c' });
    const other = process();
    expect((await resumed(other)).said).toEqual([]);
    expect((await lines()).head).toEqual(['c/input/0', 'c/1']);
  });

  it('stay away if they were aborted, and the conversation continued, also after a conflict', async () => {
    const { process, lines } = place();
    const kept = process(() => NEVER, [text('two')], [text('three')]);
    const session = await kept.open('s');
    session
      .call$('?', { callId: 'a' })
      .subscribe({ error: () => undefined })
      .unsubscribe();
    await session.call('?', { callId: 'b' });
    const other = await process([text('fast')]).open('s');
    await other.call('?', { callId: 'c' });
    await failureOf(session.call('?', { callId: 'd' }));
    expect((await resumed(kept)).said).toEqual(['three']);
    expect((await lines()).branches.map(([, id]) => id)).toEqual(['d/input/0', 'd/1']);
  });

  it('stay away if the state has forgotten them', async () => {
    const { process, lines } = place();
    const count = 130;
    const kept = process(...Array.from({ length: count }, () => [text('ok')]));
    const session = await kept.open('s');
    for (let call = 0; call < count - 1; call += 1) await session.call('?', { callId: `c${call}` });
    await session.clear();
    await session.call('?', { callId: 'last' });
    expect((await resumed(process())).said).toEqual([]);
    expect((await lines()).head).toEqual(['last/input/0', 'last/1']);
  });
});

describe('S6: sessions whose memory is in a store', () => {
  it('need nothing: each process appends to it', async () => {
    const memory = inProcessMemory();
    const one = later(text('one'));
    const two = later(text('two'));
    const chats = [one, two].map(({ answer$ }) =>
      sessions(createAgent({ model: scriptedModel(answer$) }), {
        // Another function for each process, on the same messages.
        memory: (id) => memory(id),
      }).open('s'),
    );
    const asked = chats.map((chat, index) => chat.call('?', { callId: `c${index}` }));
    two.come();
    one.come();
    await Promise.all(asked);
    const tree = await lastValueFrom(memory('s').all$?.() ?? NEVER);
    expect(tree.entries.map(({ message, after }) => [after, message.id])).toEqual([
      [null, 'c1/input/0'],
      ['c1/input/0', 'c1/1'],
      [null, 'c0/input/0'],
      ['c0/input/0', 'c0/1'],
    ]);
  });
});
