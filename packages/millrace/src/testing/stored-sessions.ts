import { firstValueFrom, lastValueFrom } from 'rxjs';
import type { SessionQuery, SessionSummary } from '../layers/sessions/find-sessions.js';
import type {
  SessionState,
  SessionStore,
  StoredSession,
} from '../layers/sessions/session-state.js';
import { type Message, textBlock } from '../values/message.js';
import { noUsage } from '../values/usage.js';
import { ok } from './assert.js';

export const stateOf = (...texts: readonly string[]): SessionState => ({
  version: 1,
  messages: texts.map((text, index): Message => ({
    id: `m${index}`,
    role: 'user',
    content: [textBlock(text)],
  })),
  groups: { web: true },
  approvals: [],
  usage: { ...noUsage, inputTokens: texts.length },
  interrupted: false,
});

export const load = (store: SessionStore, id: string): Promise<StoredSession | undefined> =>
  lastValueFrom(store.load$(id));

export const save = (
  store: SessionStore,
  id: string,
  state: SessionState,
  expected?: number,
): Promise<number> => firstValueFrom(store.save$(id, state, expected));

export const find = (
  store: SessionStore,
  query?: SessionQuery,
): Promise<readonly SessionSummary[]> => lastValueFrom(store.find$(query));

export const pagesOf = async (
  store: SessionStore,
  query: SessionQuery = {},
  afterPage: () => Promise<unknown> = () => Promise.resolve(),
): Promise<readonly SessionSummary[]> => {
  const found = new Map<string, SessionSummary>();
  for (let { before } = query; ;) {
    const page = await find(store, { ...query, ...(before && { before }) });
    before = page.at(-1);
    if (before === undefined) return [...found.values()];
    for (const session of page) {
      ok(!found.has(session.id), `The session '${session.id}' was found twice.`);
      found.set(session.id, session);
    }
    await afterPage();
  }
};

export const list = async (store: SessionStore, query?: SessionQuery): Promise<readonly string[]> =>
  (await pagesOf(store, query)).map(({ id }) => id).sort();

export const remove = (store: SessionStore, id: string): Promise<unknown> =>
  lastValueFrom(store.remove$(id), { defaultValue: undefined });

export const conflict = { code: 'conflict' };
