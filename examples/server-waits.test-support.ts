import { approval } from 'millrace';
import { createCallStore, inProcessCalls } from 'millrace/journal';
import { inProcessSessions } from 'millrace/sessions';
import { approvalQueue, type PendingApproval } from '@millrace/server/approvals';
import { chatServer, type ChatServer } from '@millrace/server/chat';
import { mergeMap, type Observable, of } from 'rxjs';
import {
  agentOf,
  type Ask,
  gated,
  gating,
  kinds,
  user,
  type Wait,
} from './async-context.test-support.js';
import { layered, running, slow, slowCalls, stuck } from './waits.test-support.js';

/** The waits of servers. */
export const serverWaits: readonly Wait[] = [
  {
    name: 'approvalQueue()',
    share: (parts) => {
      const queue = approvalQueue({ key: 'a key of more than thirty-two characters' });
      const decide = ({ token }: PendingApproval): Promise<void> =>
        user.run('somebody else', () => queue.decide(token, true).catch(() => undefined));
      const decided$ = queue.requests$.pipe(
        mergeMap((requests) => Promise.all(requests.map(decide))),
      );
      running.add(decided$.subscribe());
      return layered(() => [approval(queue.approve)])(parts);
    },
  },
  {
    name: 'the queue of a conversation of chatServer()',
    share: (parts) => asking(chatServer(agentOf({ ...parts, model: slow(parts.model) }))),
  },
  {
    name: 'a conversation of chatServer() that is loaded',
    share: (parts) => {
      const load$ = (): Observable<undefined> => gated(undefined);
      const sessions = { ...inProcessSessions(), load$ };
      const calls = createCallStore(inProcessCalls());
      return asking(chatServer(agentOf(parts), { store: { calls, sessions } }));
    },
  },
  {
    name: 'the records of chatServer()',
    share: (parts) => {
      const driver = inProcessCalls();
      const read$: typeof driver.read$ = (callId, ...given) => {
        const who = parts.userOf(callId);
        if (who !== undefined) parts.see('read', who);
        return driver.read$(callId, ...given);
      };
      const store = {
        calls: createCallStore({ ...driver, read$ }),
        sessions: inProcessSessions(),
      };
      return asking(chatServer(agentOf({ ...parts, model: slow(parts.model) }), { store }));
    },
  },
  {
    name: 'what chatServer() does for itself',
    share: (parts) => {
      const driver = inProcessCalls();
      // It looks for calls to resume, and for old ones.
      const list$: typeof driver.list$ = (query) => {
        if (query?.sessionId === undefined) parts.see('list', 'somebody else');
        return driver.list$(query);
      };
      const calls = createCallStore({ ...driver, list$ });
      const store = { calls, sessions: inProcessSessions() };
      return asking(user.run('somebody else', () => chatServer(agentOf(parts), { store })));
    },
  },
  {
    name: 'chatServer() after a restart',
    share: async (parts) => {
      const driver = inProcessCalls();
      const store = { calls: createCallStore(driver), sessions: inProcessSessions() };
      await user.run('somebody else', async () => {
        const before = chatServer(agentOf({ ...parts, model: stuck(parts.model) }), { store });
        const asked = await before.respond(question('somebody else'));
        await asked.body?.getReader().read();
        await before.close({ timeoutMs: 0 });
      });
      const calls = createCallStore(slowCalls(driver));
      const agent = agentOf({ ...parts, model: slow(parts.model) });
      return asking(
        user.run('somebody else', () => chatServer(agent, { store: { ...store, calls } })),
      );
    },
  },
  {
    name: 'chatServer() that looks for what has been left',
    without: kinds,
    share: (parts) => {
      const driver = inProcessCalls();
      const list$: typeof driver.list$ = (...given) => gating(driver.list$(...given));
      const calls = createCallStore({ ...driver, list$ });
      const load$ = (id: string): Observable<undefined> => {
        parts.see('load', id);
        return of(undefined);
      };
      const sessions = { ...inProcessSessions(), load$ };
      const server = chatServer(agentOf(parts), { store: { calls, sessions } });
      return async (who) => {
        await (await server.respond(new Request(`${address}/${who}`))).text();
      };
    },
  },
];

const address = 'http://localhost/api/chat';

const question = (who: string): Request =>
  new Request(address, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      id: 'room',
      messages: [{ role: 'user', parts: [{ type: 'text', text: who }] }],
    }),
  });

/** Each user asks in the same conversation. */
const asking =
  ({ respond }: ChatServer): Ask =>
  async (who) => {
    await (await respond(question(who))).text();
  };
