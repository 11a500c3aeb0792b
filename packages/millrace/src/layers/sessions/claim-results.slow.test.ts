import { describe, expect, it } from '@jest/globals';
import { AsyncSubject, concatMap, of, ReplaySubject, firstValueFrom } from 'rxjs';
import { createAgent } from '../../agent.js';
import { createCallStore, inProcessCalls, journal } from '../../journal/index.js';
import { suspend, toolResults } from '../../memories/suspend.js';
import { finish, type ScriptedAnswer, scriptedModel, text, toolCall } from '../../testing/index.js';
import { tool } from '../../tools/tool.js';
import { isMillraceError } from '../../values/errors.js';
import type { Input } from '../../seams/input.js';
import { textOf } from '../../values/message.js';
import { inProcessSessions } from './in-process-sessions.js';
import { keepSessions } from './keep-sessions.js';
import { sessions } from './index.js';
import type { Session } from './sessions.js';

/** What both kinds of sessions have. */
type Conversation = Pick<Session, 'call' | 'cancelSuspended' | 'saveState'>;

/** What a client does about the tool calls r1, r2 and r3, which wait. Its words and results have its name. */
const given: Readonly<Record<string, (by: string) => Input>> = {
  'r1 and r2, with a message': (by) => [
    toolResults({ r1: by, r2: by }),
    { role: 'user', content: by },
  ],
  'r2 and r3, with a message': (by) => [
    toolResults({ r2: by, r3: by }),
    { role: 'user', content: by },
  ],
  'r3, with a message': (by) => [toolResults({ r3: by }), { role: 'user', content: by }],
  'all results': (by) => toolResults({ r1: by, r2: by, r3: by }),
  'a message': (by) => by,
};
const cancels = ({ what }: Pick<Act, 'what'>): boolean => what === 'a message';

interface Act {
  readonly what: string;
  readonly by: 'Ann' | 'Ben';
}

/** A model that asks for three results, and answers all else when it is let. */
const place = () => {
  const seen: string[] = [];
  const asked$ = new ReplaySubject<string>(Infinity);
  const go$ = new AsyncSubject<void>();
  const answer: ScriptedAnswer = ({ messages }) => {
    if (messages.length === 1) {
      return of(...['r1', 'r2', 'r3'].map((id) => toolCall('ask', { id }, id)), finish());
    }
    seen.push(JSON.stringify(messages));
    asked$.next('');
    return go$.pipe(concatMap(() => [text('Done.'), finish()]));
  };
  go$.next();
  const agent = () =>
    createAgent({
      name: 'h',
      model: scriptedModel(...Array<ScriptedAnswer>(20).fill(answer)),
      tools: [tool({ name: 'ask', description: 'Asks.', run: () => suspend() })],
    });
  return {
    agent,
    seen,
    asked: () => firstValueFrom(asked$),
    go: () => {
      go$.complete();
    },
  };
};
type Place = ReturnType<typeof place>;

/** How two clients reach a conversation. */
const ways: Readonly<Record<string, (at: Place) => () => Promise<Conversation>>> = {
  'of this process': ({ agent }) => {
    const opened = sessions(agent());
    return () => Promise.resolve(opened.open('s'));
  },
  'of a store, in one process': ({ agent }) => {
    const kept = keepSessions(agent(), inProcessSessions());
    return () => kept.open('s');
  },
  'of a store, in one process, with a journal': ({ agent }) => {
    const kept = keepSessions(agent(), inProcessSessions(), {
      journal: journal(createCallStore(inProcessCalls())),
    });
    return () => kept.open('s');
  },
  'of a store, in two processes': ({ agent }) => {
    const [driver, store] = [inProcessCalls(), inProcessSessions()];
    return () =>
      keepSessions(agent(), store, { journal: journal(createCallStore(driver)) }).open('s');
  },
};

/** Where both continue, by the last message of the call that has asked. */
const places: Readonly<Record<string, (last: string) => object>> = {
  'at the head': () => ({}),
  'after their call': () => ({ after: 'a' }),
  'after their message': (after) => ({ after }),
};

const acted = async (session: Conversation, { what, by }: Act, options: object) => {
  try {
    const input = given[what]?.(by) ?? '';
    const reply = await session.call(input, { callId: by, onBusy: 'queue', ...options });
    return { by, what, said: textOf(reply), error: undefined };
  } catch (error) {
    if (!isMillraceError(error)) throw error;
    return { by, what, said: '', error };
  }
};

/** When the second one comes. */
const times: Readonly<
  Record<
    string,
    (
      at: Place,
      open: () => Promise<Conversation>,
      act: (session: Conversation, by: 'Ann' | 'Ben') => ReturnType<typeof acted>,
    ) => Promise<Awaited<ReturnType<typeof acted>>[]>
  >
> = {
  'at the same time': async ({ go }, open, act) => {
    const [ann, ben] = [await open(), await open()];
    const both = [act(ann, 'Ann'), act(ben, 'Ben')];
    await turns();
    go();
    return Promise.all(both);
  },
  'while its call runs, having read before': async ({ asked, go }, open, act) => {
    const [ann, ben] = [await open(), await open()];
    const first = act(ann, 'Ann');
    await asked();
    const second = act(ben, 'Ben');
    await turns();
    go();
    return Promise.all([first, second]);
  },
  'while its call runs': async ({ asked, go }, open, act) => {
    const first = act(await open(), 'Ann');
    await asked();
    const second = act(await open(), 'Ben');
    await turns();
    go();
    return Promise.all([first, second]);
  },
  'after its end, having read before': async ({ go }, open, act) => {
    const [ann, ben] = [await open(), await open()];
    go();
    return [await act(ann, 'Ann'), await act(ben, 'Ben')];
  },
  'after its end': async ({ go }, open, act) => {
    go();
    return [await act(await open(), 'Ann'), await act(await open(), 'Ben')];
  },
};

const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
};

const rows = Object.keys(ways).flatMap((way) =>
  Object.keys(places).flatMap((where) =>
    Object.keys(times).flatMap((when) =>
      ['r1 and r2, with a message', 'all results', 'a message'].flatMap((first) =>
        Object.keys(given).map((second) => ({ way, where, when, first, second })),
      ),
    ),
  ),
);

describe('T13: tool calls that wait, and two clients', () => {
  it.each(rows)(
    '$way, $where: $first, and $second $when',
    async ({ way, where, when, first, second }) => {
      const at = place();
      const open = ways[way]?.(at);
      if (open === undefined) throw new Error(way);
      await (await open()).call('?', { callId: 'a' });
      const { messages: asked } = await (await open()).saveState();
      const options = places[where]?.(asked.at(-1)?.id ?? '') ?? {};
      const acts = { Ann: { what: first, by: 'Ann' }, Ben: { what: second, by: 'Ben' } } as const;
      const results =
        (await times[when]?.(at, open, (session, by) => acted(session, acts[by], options))) ?? [];
      // Two questions are two branches, as without tool calls that wait.
      if (cancels(acts.Ann) && cancels(acts.Ben)) return;
      const done = results.filter(({ error }) => error === undefined);
      expect(done.length).toBeGreaterThan(0);
      const refused = results.filter(({ error }) => error !== undefined);
      for (const { by, error } of refused) {
        expect(['conflict', 'invalidResume']).toContain(error?.code);
        expect(at.seen.filter((messages) => messages.includes(by))).toEqual([]);
      }
      const users = done.filter((it) => !cancels(it));
      expect(users.length).toBeLessThan(2);
      // It leaves nothing, also for those who complete what is lacking.
      const { messages, branches } = await (await open()).saveState();
      const stored = JSON.stringify([messages, branches]);
      for (const { by } of refused) expect(stored).not.toContain(by);
      // Nobody has used what another one has settled.
      const [user] = users;
      const [other] = done.filter((it) => it !== user);
      if (user !== undefined && other !== undefined)
        expect([user.by, other.by]).toEqual(['Ann', 'Ben']);
    },
  );
});
