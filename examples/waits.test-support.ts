import type { Layer, Model } from 'millrace';
import { type CallStoreDriver, inProcessCalls } from 'millrace/journal';
import {
  concat,
  firstValueFrom,
  ignoreElements,
  lastValueFrom,
  map,
  mergeMap,
  NEVER,
  type Observable,
  ReplaySubject,
  Subscription,
} from 'rxjs';
import { agentOf, type Ask, gated, gating, type Parts } from './async-context.test-support.js';

export const ended = (source: Observable<unknown>): Promise<unknown> =>
  lastValueFrom(source, { defaultValue: undefined });

export const layered =
  (layers: (parts: Parts) => readonly Layer[] = () => []) =>
  (parts: Parts): Ask => {
    const agent = agentOf(parts, ...layers(parts));
    return (_, options) => agent.call('?', options);
  };

export const wrapped =
  (wrap: (model: Model) => Model) =>
  (parts: Parts): Ask =>
    layered()({ ...parts, model: wrap(parts.model) });

/** A model of the program, whose chunks come when somebody else opens the gate. */
export const slow = (model: Model): Model => ({
  ...model,
  stream$: (...given) => gating(model.stream$(...given)),
});

/** A model that is asked, and never answers. */
export const stuck = (model: Model): Model => ({
  ...model,
  stream$: (...given) => model.stream$(...given).pipe(mergeMap(() => NEVER)),
});

/** Calls of the program, whose reads and writes end when somebody else opens the gate. */
export const slowCalls = (driver = inProcessCalls()): CallStoreDriver => ({
  ...driver,
  read$: (...given) => concat(gating(driver.read$(...given)), gated(0).pipe(ignoreElements())),
  claim$: (callId) =>
    driver.claim$(callId).pipe(
      mergeMap(({ append$ }) =>
        gated({
          append$: (...given: Parameters<typeof append$>) =>
            concat(append$(...given), gated(0).pipe(ignoreElements())),
        }),
      ),
    ),
});

export const running = new Subscription();
export const stop = (): void => running.unsubscribe();

/** Starts a server, and returns its address. */
export const started = <T>(
  server$: Observable<T>,
  addressOf: (it: T) => string,
): Promise<string> => {
  const address$ = new ReplaySubject<string>(1);
  running.add(server$.pipe(map(addressOf)).subscribe(address$));
  return firstValueFrom(address$);
};
