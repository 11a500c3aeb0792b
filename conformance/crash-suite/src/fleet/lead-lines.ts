import { type AgentEvent, isEvent, isMillraceError, type Reply } from 'millrace';
import type { DbosEngine } from '@millrace/dbos';
import {
  defaultIfEmpty,
  firstValueFrom,
  lastValueFrom,
  type Observable,
  take,
  takeUntil,
  tap,
  timer,
} from 'rxjs';
import { hint } from '../script/script-model.js';
import { agentOf, type Burst, type FleetCall, fleetTaskOf, type Line } from './fleet-plan.js';

/** A call of the engine: that which was started, or one that continues it with an answer. */
export interface Part {
  readonly callId: string;
  /** The events of its follower. */
  readonly events: readonly AgentEvent[];
  readonly reply?: Reply;
  readonly failure?: string;
}

/** The driver's actions on a call, and the events that it received. */
export interface LedCall {
  readonly call: FleetCall;
  readonly parts: readonly Part[];
  /** Its answers, by tool call. */
  readonly answers: ReadonlyMap<string, string>;
  /** Messages that it was sent while it ran. */
  readonly steers: readonly Steer[];
  readonly isInterrupted: boolean;
  /** Messages that the engine has refused, though it had to take them. */
  readonly refusals: readonly string[];
}

export interface Steer {
  readonly partId: string;
  readonly text: string;
  /** A request was sure to follow: it must arrive. */
  readonly isSure: boolean;
}

/** A line with its calls in the order of their starts. */
export interface LedLine {
  readonly line: Line;
  readonly calls: readonly LedCall[];
}

export interface Leading {
  readonly engine: DbosEngine;
  /** Ends everything immediately. */
  readonly cut$: Observable<unknown>;
  readonly onEvent: (partId: string, event: AgentEvent) => void;
  readonly onEnded: (call: LedCall) => void;
}

interface Growing {
  readonly call: FleetCall;
  readonly parts: { callId: string; events: AgentEvent[]; reply?: Reply; failure?: string }[];
  readonly answers: Map<string, string>;
  readonly steers: Steer[];
  isInterrupted: boolean;
  readonly refusals: string[];
}

/** Starts the calls of a line in their time, and leads each to its end. Resolves when all have ended, or it is cut. */
export const leadLine = async (line: Line, leading: Leading): Promise<LedLine> => {
  const startedAt = performance.now();
  const calls: Growing[] = [];
  const begin = async (burst: Burst): Promise<void> => {
    const begun: (readonly [Growing, string])[] = [];
    for (const call of burst.calls) {
      const led: Growing = {
        call,
        parts: [],
        answers: new Map(),
        steers: [],
        isInterrupted: false,
        refusals: [],
      };
      calls.push(led);
      const callId = await started(call, leading);
      if (callId !== undefined) begun.push([led, callId]);
    }
    await Promise.all(begun.map(([led, partId]) => lead(led, partId, leading)));
  };
  for (const burst of line.bursts) {
    const waitMs = Math.max(0, burst.atMs - (performance.now() - startedAt));
    const isTime = await firstValueFrom(
      timer(waitMs).pipe(takeUntil(leading.cut$), defaultIfEmpty(undefined)),
    );
    if (isTime === undefined) break;
    await begin(burst);
  }
  return { line, calls };
};

const started = (call: FleetCall, { engine, cut$ }: Leading): Promise<string | undefined> => {
  const { callId, mode, sessionId, delayMs } = call;
  const options = {
    callId,
    ...(sessionId === undefined ? {} : { sessionId }),
    ...(delayMs === undefined ? {} : { delayMs }),
  };
  return firstValueFrom(
    engine.start$(agentOf(mode), fleetTaskOf(call), options).pipe(takeUntil(cut$)),
    { defaultValue: undefined },
  );
};

const lead = async (led: Growing, firstId: string, leading: Leading): Promise<void> => {
  let partId: string | undefined = firstId;
  while (partId !== undefined) {
    const reply = await follow(led, partId, leading);
    if (reply?.reason !== 'suspended') break;
    const results = (reply.suspensions ?? []).map(
      ({ toolCall }) => [toolCall.id, `Settled by the driver: ${toolCall.id}`] as const,
    );
    results.forEach(([id, text]) => led.answers.set(id, text));
    const before: string = partId;
    partId = await firstValueFrom(
      leading.engine.answer$(before, Object.fromEntries(results)).pipe(takeUntil(leading.cut$)),
      { defaultValue: undefined },
    ).catch((error: unknown) => {
      led.refusals.push(`answer$ of ${before}: ${String(error)}`);
      return undefined;
    });
  }
  leading.onEnded(led);
};

/** Follows a part to its end, and carries out the plan of its call. */
const follow = async (
  led: Growing,
  partId: string,
  { engine, cut$, onEvent }: Leading,
): Promise<Reply | undefined> => {
  const { call } = led;
  const part: Growing['parts'][number] = { callId: partId, events: [] };
  led.parts.push(part);
  const tasks: Promise<unknown>[] = [];
  const decided = new Set<string>();
  let hasInterrupted = false;
  const send = async (
    what: string,
    sent$: Observable<never>,
    isSure: boolean,
  ): Promise<boolean> => {
    try {
      await lastValueFrom(sent$.pipe(takeUntil(cut$)), { defaultValue: undefined });
      return true;
    } catch (error) {
      const isLate = isMillraceError(error) && error.code === 'invalidResume';
      if (isSure || !isLate) led.refusals.push(`${what} of ${partId}: ${String(error)}`);
      return false;
    }
  };
  const interrupt = async (): Promise<void> => {
    if (hasInterrupted) return;
    hasInterrupted = true;
    led.isInterrupted = true;
    await send('interrupt$', engine.interrupt$(partId, 'Stopped.'), false);
  };
  const steer = async (isSure: boolean): Promise<void> => {
    const text = `${hint} ${call.callId} ${led.steers.length + 1}`;
    led.steers.push({ partId, text, isSure });
    await send('steer$', engine.steer$(partId, text), isSure);
  };
  const decide = async (
    asked: Extract<AgentEvent, { readonly type: 'approvalRequested' }>,
  ): Promise<void> => {
    for (const at of call.steers) if (at === 'asked') await steer(call.interrupt === undefined);
    if (call.interrupt === undefined) await send('decide$', engine.decide$(asked, true), true);
    else await interrupt();
  };
  const see = (event: AgentEvent): void => {
    part.events.push(event);
    onEvent(partId, event);
    const count = part.events.length;
    if (call.interrupt === count) tasks.push(interrupt());
    call.steers.filter((at) => at === count).forEach(() => tasks.push(steer(false)));
    // A call that another worker resumes asks again: the decision must have lasted.
    if (isEvent(event, 'postCall') && event.callId === partId) part.reply = event.reply;
    if (event.type === 'approvalRequested' && !decided.has(event.toolCall.id)) {
      decided.add(event.toolCall.id);
      tasks.push(decide(event));
    }
  };
  try {
    await lastValueFrom(engine.attach$(partId).pipe(tap(see), takeUntil(cut$)), {
      defaultValue: undefined,
    });
  } catch (error) {
    part.failure = String(error);
  }
  await Promise.all(tasks);
  return part.reply;
};

/** Whether it has run to its end, in all its parts. */
export const hasEnded = ({ parts }: LedCall): boolean => {
  const reason = parts.at(-1)?.reply?.reason;
  return reason !== undefined && reason !== 'suspended';
};

export const later = (ms: number, cut$: Observable<unknown>): Promise<unknown> =>
  firstValueFrom(timer(ms).pipe(take(1), takeUntil(cut$)), { defaultValue: undefined });
