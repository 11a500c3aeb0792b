import {
  type Agent,
  type AgentEvent,
  createAgent,
  isMillraceError,
  type Reply,
  textOf,
  tool,
  toolResults,
} from 'millrace';
import { sessions } from 'millrace/sessions';
import { jsonSchema } from 'millrace/schema';
import { verifyEvents } from 'millrace/testing';
import type { Fault, FaultServer, SeenRequest, Wire } from '@millrace/fault-server';
import { inspect } from 'node:util';
import {
  catchError,
  concat,
  defer,
  lastValueFrom,
  map,
  type Observable,
  of,
  race,
  tap,
  timer,
  toArray,
} from 'rxjs';
import { secret, type Subjects, subjects } from './subjects.js';

/** What came of one fault on one wire. */
export interface Played {
  readonly fault: Fault;
  readonly wire: Wire;
  /** How the call ended, in a few words. */
  readonly outcome: string;
  readonly seen: readonly SeenRequest[];
  /** From the call to its end, in milliseconds. */
  readonly ms: number;
  /** The inputs that the tool was run with. */
  readonly runs: readonly unknown[];
  readonly events: readonly AgentEvent[];
  /** What is not as it must be; nothing, where all is well. */
  readonly wrongs: readonly string[];
}

/** How long a call may take in all before it counts as hanging, in milliseconds. */
const hangs = 20_000;

/** Calls an agent under a fault, and holds what comes out against what must. */
export const playFault = async (
  server: FaultServer,
  fault: Fault,
  wire: Wire,
  made: Subjects = subjects,
): Promise<Played> => {
  const vendor = await server.play(fault.scenario(wire));
  const runs: unknown[] = [];
  const weather = tool({
    name: 'weather',
    description: 'Tells the weather of a city.',
    input: jsonSchema({
      type: 'object',
      properties: { city: { type: 'string' } },
      required: ['city'],
      additionalProperties: false,
    }),
    run: (input) => {
      runs.push(input);
      return 'Sunny.';
    },
  });
  const timeouts = timeoutsOf(fault);
  const agent = createAgent({ model: made[wire](vendor.url, { timeouts }), tools: [weather] });
  const startedAt = performance.now();
  const events: AgentEvent[] = [];
  const ended = await lastValueFrom(
    race(
      calls$(agent, fault.expects).pipe(
        tap((event) => events.push(event)),
        toArray(),
        map(() => ({ status: 'replied' }) as const),
        catchError((error: unknown) => of({ status: 'failed', error } as const)),
      ),
      timer(hangs).pipe(map(() => ({ status: 'hangs' }) as const)),
    ),
  );
  const ms = Math.round(performance.now() - startedAt);
  const seen = await vendor.settled();
  const played = { fault, wire, seen, ms, runs, events };
  const error = ended.status === 'failed' ? ended.error : undefined;
  const reply = events.findLast((event) => event.type === 'postCall')?.reply;
  const outcome = ended.status === 'hangs' ? 'hangs' : outcomeOf(reply, error);
  return { ...played, outcome, wrongs: wrongsOf({ ...played, outcome }, reply, error) };
};

/** A call, and the one that continues it with the results that it waits for. */
const calls$ = (agent: Agent, { resumes }: Fault['expects']): Observable<AgentEvent> => {
  const question = 'What is the weather in Oslo?';
  if (resumes === undefined) return agent.stream$(question).pipe(verifyEvents());
  const session = sessions(agent).open('u');
  return concat(
    session.stream$(question).pipe(verifyEvents()),
    defer(() => session.stream$(toolResults(resumes)).pipe(verifyEvents())),
  );
};

/** Short only where silence is the fault, so that a busy machine does not make others of it. */
const timeoutsOf = ({ expects: { outcome, requests } }: Fault) => {
  const isSilence = 'error' in outcome && [outcome.error].flat().includes('timeout');
  return {
    firstChunkMs: isSilence && requests > 1 ? 1_500 : 5_000,
    chunkMs: isSilence ? 150 : 5_000,
  };
};

const outcomeOf = (reply: Reply | undefined, error: unknown): string => {
  if (reply !== undefined) {
    return reply.reason === 'answer' ? `answer "${textOf(reply).slice(0, 40)}"` : reply.reason;
  }
  return isMillraceError(error) ? error.code : `an untyped error: ${String(error)}`;
};

const wrongsOf = (
  { fault, seen, runs, events, outcome }: Omit<Played, 'wrongs'>,
  reply: Reply | undefined,
  error: unknown,
): readonly string[] => {
  const { expects } = fault;
  const wrongs: string[] = [];
  const must = (isRight: boolean, what: string): void => {
    if (!isRight) wrongs.push(what);
  };
  const instead = error instanceof Error ? error.message : outcome;
  must(
    meets(expects.outcome, reply, error),
    `it must be ${JSON.stringify(expects.outcome)}, not ${instead}`,
  );
  must(
    seen.length === expects.requests,
    `${expects.requests} requests must be sent, not ${seen.length}`,
  );
  const retries = events.filter(({ type }) => type === 'modelRetry').length;
  const replies = events.flatMap((event) => (event.type === 'postCall' ? [event.reply] : []));
  const followUps = replies.reduce((sum, { iterations }) => sum + Math.max(0, iterations - 1), 0);
  const calls = expects.resumes === undefined ? 1 : 2;
  must(
    expects.resumes === undefined || replies[0]?.reason === 'suspended',
    'the call must wait for results',
  );
  must(
    isRedirect(fault) || seen.length === calls + retries + followUps + (expects.pauses ?? 0),
    `each request must be an attempt that was told: ${retries} retries`,
  );
  must(
    expects.waitMs === undefined || gapOf(seen) >= expects.waitMs,
    `it must wait ${expects.waitMs ?? 0} ms, not ${gapOf(seen)}`,
  );
  must(
    expects.closes === undefined || seen.some(({ closedEarly }) => closedEarly),
    'the socket must be closed',
  );
  must(
    JSON.stringify(runs) === JSON.stringify(expects.runs ?? []),
    `the tool must be run with ${JSON.stringify(expects.runs ?? [])}, not ${JSON.stringify(runs)}`,
  );
  const body = JSON.stringify(seen.at(-1)?.body);
  for (const piece of expects.sends ?? []) {
    must(body.includes(piece), `the last request must have ${piece}`);
  }
  wrongs.push(...seen.flatMap(({ violations }) => violations.map((it) => `refused: ${it}`)));
  must(!showsSecret([events, error, outcome]), 'the key is shown');
  return wrongs;
};

const meets = (
  outcome: Fault['expects']['outcome'],
  reply: Reply | undefined,
  error: unknown,
): boolean => {
  if ('answer' in outcome) {
    return reply?.reason === 'answer' && textOf(reply) === outcome.answer;
  }
  if ('reason' in outcome) return reply?.reason === outcome.reason;
  return (
    isMillraceError(error) &&
    [outcome.error].flat().includes(error.code) &&
    (outcome.retryable ?? error.retryable) === error.retryable &&
    (outcome.retryAfterMs ?? error.retryAfterMs) === error.retryAfterMs
  );
};

/** A redirect within the origin is one request of ours, and two of the server's. */
const isRedirect = ({ id }: Fault): boolean => id.includes('redirect');

const gapOf = ([first, second]: readonly SeenRequest[]): number =>
  first === undefined || second === undefined ? 0 : second.startedAt - first.startedAt;

/** Looks as deep as a logger would, and deeper: also into causes and stacks. */
const showsSecret = (shown: unknown): boolean => {
  const text = `${inspect(shown, { depth: 20, showHidden: true, maxStringLength: null })}${JSON.stringify(shown)}`;
  return text.includes(secret);
};
