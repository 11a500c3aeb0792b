import { awaitDecision, openDbos } from '@millrace/dbos';
import { concat, concatMap, fromEvent, map, type Observable, take, timer } from 'rxjs';
import { postEffect } from '../life/post-effect.js';
import { type Effect, scriptAgent } from '../script/script-agent.js';
import { seeded } from '../seeded.js';
import { agentOf, modes, planForTask } from './fleet-plan.js';
import { engineOptions, isWorkerOrders, plainNotice, type WorkerOrders } from './orders.js';

// A process that runs calls until SIGTERM, or until its driver is gone.

process.once('disconnect', () => process.exit());
// Ctrl-C reaches it, too, but its driver ends it.
process.on('SIGINT', () => undefined);
process.once('message', (message) => {
  if (!isWorkerOrders(message)) throw new Error('These are no orders.');
  work$(message).subscribe({
    next: (notice) => process.send?.(notice),
    error: (error: unknown) => {
      throw error;
    },
    complete: () => process.send?.({}, undefined, undefined, () => process.disconnect()),
  });
});

function work$(orders: WorkerOrders): Observable<unknown> {
  const engine = openDbos(orders.url, engineOptions(orders));
  const post$ = postEffect(orders.effectsUrl, orders.life, () => undefined);
  const pace = { chunkMs: orders.chunkMs, onAsk: () => undefined, onChunk: () => undefined };
  // Between the intent and the effect, and between the effect and the record: kills must hit both.
  const effect$ = (effect: Effect): Observable<unknown> => {
    const [beforeMs, afterMs] = pausesOf(effect.key, orders.toolMs);
    return timer(beforeMs).pipe(
      concatMap(() => post$(effect)),
      concatMap(() => timer(afterMs)),
    );
  };
  const agents = modes.map((mode) => ({
    agent: scriptAgent({
      name: agentOf(mode),
      planFor: planForTask,
      pace,
      effect$,
      approve: awaitDecision,
    }),
    onUncertain: mode,
    concurrency: orders.concurrency,
  }));
  const until$ = fromEvent(process, 'SIGTERM').pipe(take(1));
  const { recoverMs } = orders;
  return concat(
    engine.work$(agents, { until$, recoverMs, drainMs: 5_000 }).pipe(map(plainNotice)),
    engine.close$(),
  );
}

/** The same for a tool call in any process. */
function pausesOf(key: string, [least, most]: WorkerOrders['toolMs']): readonly [number, number] {
  const sum = Buffer.from(key).reduce((all, byte) => (all * 31 + byte) | 0, 7);
  const random = seeded(sum);
  const ms = least + random.below(most - least + 1);
  const beforeMs = random.below(ms + 1);
  return [beforeMs, ms - beforeMs];
}
