import pg from 'pg';
import { Observable, retry, type SchedulerLike, share, timer } from 'rxjs';
import type { Query } from '../sql/sql.js';

/** Delay before it listens for notifications again after a lost connection. */
const reconnectMs = 1_000;

/** The notifications of a channel. Reconnects. */
export const notices$ = (
  config: pg.PoolConfig,
  channel: string,
  scheduler: SchedulerLike,
): Observable<string> =>
  connected$(config, channel).pipe(retry({ delay: () => timer(reconnectMs, scheduler) }), share());

const connected$ = (config: pg.PoolConfig, channel: string): Observable<string> =>
  new Observable((subscriber) => {
    const client = new pg.Client({ connectionTimeoutMillis: 10_000, keepAlive: true, ...config });
    client.on('notification', ({ payload = '' }) => subscriber.next(payload));
    client.on('error', (error) => subscriber.error(error));
    client.on('end', () => subscriber.error(new Error('The connection has ended.')));
    client
      .connect()
      .then(() => client.query(`listen ${channel}`))
      .then(
        () => subscriber.next(''),
        (error: unknown) => subscriber.error(error),
      );
    return () => {
      client.end().catch(() => undefined);
    };
  });

/** Sends notifications outside the transactions, which would wait for each other otherwise. Batches pending topics. */
export const notifier = (query: Query, channel: string): ((topic: string) => void) => {
  const topics = new Set<string>();
  const state = { isSending: false };
  const send = (): void => {
    if (state.isSending || topics.size === 0) return;
    state.isSending = true;
    const sent = [...topics];
    topics.clear();
    query('select pg_notify($1, topic) from unnest($2::text[]) as topic', [channel, sent])
      // Listeners also poll, so a lost notification only delays them.
      .catch(() => undefined)
      .finally(() => {
        state.isSending = false;
        send();
      });
  };
  return (topic) => {
    topics.add(topic);
    send();
  };
};
