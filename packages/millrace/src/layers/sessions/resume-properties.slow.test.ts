import fc from 'fast-check';
import { describe, expect, it } from '@jest/globals';
import { concat, concatMap, defer, from, lastValueFrom, type Observable } from 'rxjs';
import { createAgent } from '../../agent.js';
import { dyingAfter } from '../../journal/dying-driver.test-support.js';
import {
  type CallStoreDriver,
  createCallStore,
  inProcessCalls,
  journal,
} from '../../journal/index.js';
import type { ModelChunk } from '../../models/model.js';
import type { Reply } from '../../values/reply.js';
import { agentTool } from '../teams/index.js';
import { type ScriptedAnswer, scriptedModel, text, toolCall } from '../../testing/index.js';
import { tool } from '../../tools/tool.js';
import { toolGroup } from '../../tools/tool-group.js';
import { inProcessSessions } from './in-process-sessions.js';
import type { SessionStore } from './session-state.js';
import { keepSessions } from './keep-sessions.js';
import type { SessionState } from './index.js';

const usage: ModelChunk = { type: 'usage', usage: { inputTokens: 3, outputTokens: 1 } };

const use: fc.Arbitrary<ModelChunk> = fc.oneof(
  fc.constantFrom('plain', 'fails', 'below').map((name) => toolCall(name, { user_prompt: '?' })),
  fc
    .constantFrom('activate', 'deactivate')
    .map((how) => toolCall('manage_tools', { [how]: ['web'] })),
);
const turns = fc.array(fc.array(use, { minLength: 1, maxLength: 2 }), { maxLength: 2 });
type Turns = readonly (readonly ModelChunk[])[];

/** Says at a turn of a call what it says then, however often it is asked. */
const answerOf =
  (calls: readonly Turns[]): ScriptedAnswer =>
  ({ messages }) => {
    const asked = messages.findLastIndex(({ role }) => role === 'user');
    const call = Number(/c(\d+)/u.exec(messages[asked]?.id ?? '')?.[1] ?? 0);
    const done = messages.slice(asked).filter(({ role }) => role === 'tool').length;
    return [...(calls[call]?.[done] ?? [text(`Done ${call}.`)]), usage];
  };

const tools = [
  tool({ name: 'plain', description: 'Plain.', run: () => 'Plain.' }),
  tool({
    name: 'fails',
    description: 'Fails.',
    run: () => {
      throw new Error('No.');
    },
  }),
  toolGroup({
    name: 'web',
    description: 'The web.',
    tools: [tool({ name: 'search', description: 'Searches.', run: () => 'Found.' })],
  }),
];

/** A chat that asks what its session does not know of yet, in a process of its own. */
const chat$ = (
  driver: CallStoreDriver,
  store: SessionStore,
  asked: readonly Turns[],
): Observable<Reply> => {
  const calls = createCallStore(driver);
  const answers = (count: number, answer: ScriptedAnswer) =>
    scriptedModel(...Array.from({ length: count }, () => answer));
  const helper = createAgent({ name: 'below', model: answers(40, () => [text('ok'), usage]) });
  const agent = createAgent({
    model: answers(40, answerOf(asked)),
    tools: [...tools, agentTool(helper, { description: 'Below.' })],
    use: [journal(calls)],
  });
  return keepSessions(agent, store, { journal: journal(calls, { onUncertain: 'rerun' }) })
    .open$('s')
    .pipe(
      concatMap((session) =>
        concat(
          session.resume$(),
          session.saveState$().pipe(
            concatMap(({ messages }) => {
              const isAsked = (call: number): boolean =>
                messages.some(({ id }) => id.startsWith(`c${call}/`));
              return from([...asked.keys()].filter((call) => !isAsked(call)));
            }),
            concatMap((call) => defer(() => session.call$(`${call}?`, { callId: `c${call}` }))),
          ),
        ),
      ),
    );
};

/** Attempts after the first give their messages other ids. */
const savedIn = async (store: SessionStore): Promise<SessionState> => {
  const stored = await lastValueFrom(store.load$('s'));
  return JSON.parse(JSON.stringify(stored?.state).replaceAll(/~\d+/gu, '')) as SessionState;
};

/** CI cuts at some of the writes, `npm run test:all` at each. */
const stride = Math.min(3, Math.ceil(1 / Number(process.env['MILLRACE_RUNS'] ?? 1)));

describe('S4, S6: a kept session whose process ends anywhere', () => {
  const whole = async (asked: readonly Turns[]) => {
    const store = inProcessSessions();
    await lastValueFrom(chat$(inProcessCalls(), store, asked));
    return savedIn(store);
  };
  const broken = async (asked: readonly Turns[], cuts: readonly number[]) => {
    const [driver, store] = [inProcessCalls(() => 0), inProcessSessions()];
    for (const cut of cuts) {
      const dying = dyingAfter(driver, cut);
      chat$(dying.driver, dying.sessionsOf(store), asked).subscribe({ error: () => undefined });
      dying.end();
    }
    await lastValueFrom(chat$(driver, store, asked), { defaultValue: undefined });
    // Once more: nothing is left to be done.
    const before = await lastValueFrom(store.load$('s'));
    await lastValueFrom(chat$(driver, store, asked), { defaultValue: undefined });
    expect(await lastValueFrom(store.load$('s'))).toEqual(before);
    return savedIn(store);
  };

  it('has the same state in the end, between any two writes to the two stores', async () => {
    const below = toolCall('below', { user_prompt: '?' });
    const asked = [
      [[toolCall('plain')]],
      [[below, toolCall('manage_tools', { activate: ['web'] })]],
    ];
    const expected = await whole(asked);
    expect(expected).toMatchObject({ groups: { web: true }, lastCall: { callId: 'c1' } });
    const dying = dyingAfter(inProcessCalls(), 1_000);
    await lastValueFrom(chat$(dying.driver, dying.sessionsOf(inProcessSessions()), asked));
    for (let cut = 0; cut <= dying.written(); cut += stride) {
      expect(await broken(asked, [cut])).toEqual(expected);
    }
  });

  it('has it also if it ends again and again', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(turns, { minLength: 1, maxLength: 3 }),
        fc.array(fc.nat(50), { maxLength: 4 }),
        async (asked, cuts) => {
          expect(await broken(asked, cuts)).toEqual(await whole(asked));
        },
      ),
      { numRuns: 30 },
    );
  });
});
