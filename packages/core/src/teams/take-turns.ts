import {
  concatMap,
  defaultIfEmpty,
  defer,
  EMPTY,
  expand,
  from,
  last,
  map,
  type Observable,
  type ObservableInput,
  of,
  take,
} from 'rxjs';
import type { Agent } from '../agent.js';
import type { CallOptions } from '../call-options.js';
import { isStep } from '../compose/compose.js';
import type { StepRun } from '../compose/step-runs.js';
import { MillraceError, misuse } from '../errors.js';
import type { Input } from '../input.js';
import type { Reply } from '../reply.js';
import { hearing, type Transcript } from './transcript.js';
import { createTrampoline, subscribeOnTrampoline } from '../trampoline.js';

/**
 * Decides by what was said so far, and by what was asked; at once, or by an Observable, of which the first value counts, or a Promise. One who calls an agent
 * passes the options on, so that the call belongs to the one above.
 */
export type Decide<What, Said extends Reply = Reply> = (
  transcript: Transcript<Said>,
  input: Input,
  options: CallOptions,
) => What | ObservableInput<What>;

/** Lets agents speak one after the other, and emits what they have said when nobody is next, when the turns are used up, or when one was interrupted. */
export const takeTurns = <Said extends Reply>(
  owner: string,
  agents: readonly Agent[],
  maxTurns: number,
  next: Decide<Agent | undefined, Said>,
): StepRun<Transcript<Said>> => {
  const isOver = (transcript: Transcript<Said>): boolean =>
    transcript.length >= maxTurns || transcript.at(-1)?.reason === 'interrupted';
  return (input, { speaks: _speaks, output: _output, ...options }) =>
    inTurns$<Transcript<Said>>([], (transcript) =>
      isOver(transcript)
        ? EMPTY
        : defer(() => decided$(next(transcript, input, options), isNobodyOrStep)).pipe(
            concatMap((agent) => {
              if (agent === undefined) return EMPTY;
              if (!agents.includes(agent)) throw noAgentOf(owner);
              return reply$(owner, agent, transcript, input, options);
            }),
            // What they say is known by their types, which a list of them does not keep.
            // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
            map((reply) => Object.freeze([...transcript, reply as Said])),
          ),
    ).pipe(last());
};

const reply$ = (
  owner: string,
  agent: Agent,
  transcript: Transcript,
  asked: Input,
  options: Omit<CallOptions, 'output' | 'speaks'>,
): Observable<Reply> => {
  const { history, input } = hearing(agent.name, asked, transcript);
  const before = [...(options.history ?? []), ...history];
  return agent.call$(input, { ...options, history: before }).pipe(
    map((reply) => {
      if (reply.reason === 'suspended') throw cannotWait(owner, agent.name);
      return reply.name === agent.name ? reply : Object.freeze({ ...reply, name: agent.name });
    }),
  );
};

export const decided$ = <What>(
  told: What | ObservableInput<What>,
  isTold: (value: What | ObservableInput<What>) => value is What,
): Observable<What | undefined> =>
  isTold(told) ? of(told) : from(told).pipe(take(1), defaultIfEmpty(undefined));

const isNobodyOrStep = (
  value: Agent | undefined | ObservableInput<Agent | undefined>,
): value is Agent | undefined => value === undefined || isStep(value);

const noAgentOf = (owner: string): MillraceError =>
  misuse(`${owner}: what 'next' has chosen is none of its 'agents'.`);

const cannotWait = (owner: string, name: string): MillraceError =>
  new MillraceError(
    'invalidState',
    `${owner}: the agent '${name}' waits for the result of a tool, and nobody can bring it one here. Give it tools that do not suspend.`,
  );

/** Emits a state and all that come of it, one by one, until one comes to nothing. States that come at once do not nest. */
export const inTurns$ = <State>(
  first: State,
  next: (state: State) => Observable<State>,
): Observable<State> =>
  defer(() => {
    const inTurn = subscribeOnTrampoline<State>(createTrampoline());
    return of(first).pipe(expand((state) => next(state).pipe(inTurn)));
  });
