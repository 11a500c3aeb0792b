import { type CallOptions, inProcessMemory, type Layer, restoreAsyncContext } from 'millrace';
import { summarisingMemory } from 'millrace/memories';
import { inProcessSessions, keepSessions, sessions } from 'millrace/sessions';
import { concat, concatMap, delay, endWith, ignoreElements, type Observable, tap } from 'rxjs';
import { agentOf, gated, gating, user, type Wait } from './async-context.test-support.js';
import { ended, slow } from './waits.test-support.js';

/** The waits of sessions. */
export const sessionWaits: readonly Wait[] = [
  {
    name: 'the queue of a session',
    share: (parts) => {
      const chats = sessions(agentOf(parts), { onBusy: 'queue' });
      return (_, options) => chats.open('room').call('?', options);
    },
  },
  {
    name: 'a session that switches',
    without: ['tool', 'preActing', 'postActing', 'model', 'preReasoning', 'phase'],
    share: (parts) => {
      const chats = sessions(agentOf({ ...parts, model: slow(parts.model) }), { onBusy: 'switch' });
      return (_, options) => chats.open('room').call('?', options);
    },
  },
  {
    name: 'a session that steers',
    share: (parts) => {
      const chats = sessions(agentOf({ ...parts, model: slow(parts.model) }));
      return async (who, options) => {
        const chat = chats.open(who);
        const running = chat.call('?', options);
        await chat.call('More.', { ...options, callId: `${who}-more`, onBusy: 'steer' });
        await running;
      };
    },
  },
  {
    name: 'a session that is loaded',
    share: (parts) => {
      const store = { ...inProcessSessions(), load$: () => gated(undefined) };
      const kept = keepSessions(agentOf(parts), store);
      return (_, options) =>
        ended(
          kept
            .open$('room')
            .pipe(concatMap((chat) => chat.call$('?', { ...options, onBusy: 'queue' }))),
        );
    },
  },
  {
    name: 'a memory',
    share: (parts) => {
      const memory = inProcessMemory();
      const chats = sessions(agentOf(parts), {
        memory: (id) => {
          const inner = memory(id);
          return {
            ...inner,
            load$: () => gating(inner.load$()),
            append$: (...given) => gating(inner.append$(...given)),
          };
        },
      });
      return (who, options) => chats.open(who).call('?', options);
    },
  },
  {
    name: 'a summary that calls share',
    share: (parts) => {
      const memory = summarisingMemory(inProcessMemory(), {
        model: slow(parts.asking()),
        whenTokens: 1,
      });
      const chats = sessions(agentOf(parts), { memory, onBusy: 'queue' });
      return (_, options) => chats.open('room').call('?', options);
    },
  },
  {
    name: 'a session that is closed meanwhile',
    share: async (parts) => {
      const store = inProcessSessions();
      const save$: typeof store.save$ = (...given) => gating(store.save$(...given));
      const kept = keepSessions(agentOf(parts), { ...store, save$ });
      const room = await kept.open('room');
      user.run('somebody else', () => void room.close());
      return (_, options) =>
        ended(
          kept
            .open$('room')
            .pipe(concatMap((chat) => chat.call$('?', { ...options, onBusy: 'queue' }))),
        );
    },
  },
  {
    name: 'a session that another user closes, because it is idle',
    share: (parts) => {
      const store = inProcessSessions();
      const { append$: _, ...whole } = store;
      const save$: typeof store.save$ = (id, ...given) => {
        parts.see('save', id.split(' ')[0] ?? '');
        return gating(store.save$(id, ...given));
      };
      const kept = keepSessions(agentOf(parts), { ...whole, save$ }, { idleMs: 1 });
      const asked$ = (id: string, options: CallOptions): Observable<unknown> =>
        kept.open$(id).pipe(
          concatMap((chat) =>
            // Its closing has a title to save.
            chat.call$('?', options).pipe(tap(() => chat.rename('Asked'))),
          ),
        );
      return async (who, options) => {
        await ended(asked$(who, options));
        // The timer of one closes the sessions of the others.
        await ended(gated(0).pipe(delay(who === 'ann' ? 10 : 40)));
        await ended(asked$(`${who} again`, { ...options, callId: `${who} again` }));
      };
    },
    also: ['save'],
  },
  {
    name: 'calls that reach their session late',
    share: (parts) => {
      const chats = sessions(agentOf(parts, lateFirst()), { onBusy: 'queue' });
      return (_, options) => chats.open('room').call('?', options);
    },
  },
  {
    name: 'calls that steer before the session runs',
    share: (parts) => {
      const chats = sessions(agentOf({ ...parts, model: slow(parts.model) }, lateFirst()));
      return async (who, options) => {
        const chat = chats.open(who);
        const running = chat.call('?', options);
        await chat.call('More.', { ...options, callId: `${who}-more`, onBusy: 'steer' });
        await running;
      };
    },
  },
];

/** The first call comes last: the others have to wait for it. */
const lateFirst = (): Layer => {
  let gates = 4;
  return {
    name: 'late',
    record: () => (call$) => {
      gates = Math.max(1, gates - 1);
      return concat(...Array.from({ length: gates }, () => gated(0))).pipe(
        ignoreElements(),
        endWith(0),
        restoreAsyncContext(),
        concatMap(() => call$),
      );
    },
  };
};
