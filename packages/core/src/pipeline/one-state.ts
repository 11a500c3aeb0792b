import {
  concatMap,
  defer,
  filter,
  map,
  type MonoTypeOperatorFunction,
  NEVER,
  of,
  race,
  throwIfEmpty,
} from 'rxjs';
import { contained } from '../contained.js';
import { MillraceError } from '../errors.js';
import { failAs } from '../fail-as.js';
import { isRecord } from '../json.js';
import type { CallContext, CallStage } from './call-stage.js';
import type { CallState } from './call-state.js';
import { nativePipeline } from './native-pipeline.js';

/** Makes a stage for a call, and holds one that is not ours to one state: the first that it makes. It may go on holding something until the call has ended. */
export const oneState = (
  create: CallStage,
  context: CallContext,
  /** An interrupt passes over it where it hangs: nothing has happened yet that it must see. */
  isBeforeLoop: boolean,
): MonoTypeOperatorFunction<CallState> => {
  if (nativePipeline.includes(create)) return create(context);
  const name = create.name === '' ? 'a stage without a name' : `the stage '${create.name}'`;
  return concatMap((state) =>
    race(
      defer(() => of(state).pipe(create(context))).pipe(contained()),
      isBeforeLoop ? context.interruption.signal$.pipe(map(() => state)) : NEVER,
    ).pipe(
      filter((_, index) => index === 0),
      map((made) => {
        if (isState(made)) return made;
        throw notOne(name, 'something else');
      }),
      throwIfEmpty(() => notOne(name, 'none')),
      failAs('unknown', `In ${name}`),
    ),
  );
};

const isState = (value: unknown): value is CallState =>
  isRecord(value) && isRecord(value['plan']) && Array.isArray(value['history']);

const notOne = (name: string, what: string): MillraceError =>
  new MillraceError(
    'invalidState',
    `Of one call, ${name} made ${what}. A stage must make one state of one: the state as it was, or what a transition made of it.`,
  );
